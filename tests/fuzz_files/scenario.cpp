// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <rehearse/job/program.h>
#include <rehearse_internal/sim/scenario.h>

#include "fuzz_files/input.h"

REHEARSE_PROGRAM(fuzzed){.summary = "for scenarios",
                         .parameters = {{"steps", std::int64_t{20}, "training steps", 1, 1000},
                                        {"rate", 0.5, "learning rate"},
                                        {"data", std::string("built in"), "what to train on"},
                                        {"shuffle", true, "in another order each epoch"}},
                         .body = [](rehearse::RankContext&, const rehearse::Parameters&) {}};

// A scenario that can be read can be written, and is then read back alike.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  std::string written;
  try {
    written = sim::to_toml(sim::parse_scenario(fuzz::text_of(data, size), "fuzzed.toml"));
  } catch (const sim::ScenarioError&) {
    return 0;
  }
  fuzz::require(sim::to_toml(sim::parse_scenario(written, "fuzzed.toml")) == written, "scenarios are read as written");
  return 0;
}
