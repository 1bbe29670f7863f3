// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/runner.h>

namespace rehearse {
namespace {

using MakeRunner = std::unique_ptr<Runner> (*)();

constinit MakeRunner g_make_real_runner = nullptr;

}  // namespace

const std::vector<std::string>& transport_names() {
  static const std::vector<std::string> names = {"automatic", "nccl", "gloo", "processes"};
  return names;
}

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
