// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/runner.h>

namespace rehearse {
namespace {

using MakeRunner = std::unique_ptr<Runner> (*)();

constinit MakeRunner g_make_real_runner = nullptr;

}  // namespace

const std::vector<std::string>& carrier_names() {
  static const std::vector<std::string> names = {"automatic", "nccl", "gloo", "processes"};
  return names;
}

RegisteredRunner::RegisteredRunner(std::unique_ptr<Runner> (*make)()) { g_make_real_runner = make; }

std::unique_ptr<Runner> make_real_runner() {
  if (g_make_real_runner != nullptr) return g_make_real_runner();
  throw RunnerUnavailable(
      "this executable has no real mode: it does not link rehearse::real (rehearse::main and rehearse::gtest bring "
      "it), or "
      "was built with -DREHEARSE_REAL=OFF");
}

}  // namespace rehearse
