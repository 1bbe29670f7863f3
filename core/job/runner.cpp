// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/runner.h>

#include <array>
#include <cstddef>

#include <rehearse_internal/job/run_options.h>

namespace rehearse {
namespace {

using MakeRunner = std::unique_ptr<Runner> (*)();

constinit MakeRunner g_make_real_runner = nullptr;

struct TransportRow {
  Transport transport;
  const char* name;
  bool of_processes, on_gpus;
};

constexpr std::array kTransports{
    TransportRow{Transport::automatic, "automatic", false, false},
    TransportRow{Transport::nccl, "nccl", false, true},
    TransportRow{Transport::gloo, "gloo", true, false},
    TransportRow{Transport::processes, "processes", true, true},
};

constexpr bool rows_follow_enum() {
  for (std::size_t i = 0; i < kTransports.size(); ++i) {
    if (static_cast<std::size_t>(kTransports[i].transport) != i) return false;
  }
  return kTransports.back().transport == Transport::processes;
}
static_assert(rows_follow_enum(), "a transport has no row, or not in its place; processes is the last");

}  // namespace

const std::vector<std::string>& transport_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& row : kTransports) all.emplace_back(row.name);
    return all;
  }();
  return names;
}

bool is_of_processes(Transport transport) { return kTransports[static_cast<std::size_t>(transport)].of_processes; }
bool is_on_gpus(Transport transport) { return kTransports[static_cast<std::size_t>(transport)].on_gpus; }

RegisteredRunner::RegisteredRunner(std::unique_ptr<Runner> (*make)()) { g_make_real_runner = make; }

bool has_real_runner() noexcept { return g_make_real_runner != nullptr; }

void require_real_runner() {
  if (has_real_runner()) return;
  throw RunnerUnavailable(
      "this run needs the real mode, which is not part of this program: link rehearse::real (find_package(rehearse "
      "COMPONENTS main real), for tests COMPONENTS gtest real); a rehearse that was built with -DREHEARSE_REAL=OFF "
      "does "
      "not have that component");
}

std::unique_ptr<Runner> make_real_runner() {
  require_real_runner();
  return g_make_real_runner();
}

}  // namespace rehearse
