// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/hash/fnv1a.h>
#include <rehearse_internal/sim/run_log.h>

#include "fuzz_files/input.h"

namespace {

// Corrects the checksum in the last line. Otherwise the reader would refuse nearly every input because of it.
std::string with_checksum(std::string log) {
  if (const auto line = log.rfind("checksum: "); line != log.npos) log.resize(line);
  return fmt::format("{}checksum: 0x{:016x}\n", log, rehearse::fnv1a(log));
}

}  // namespace

// A log that can be read can be written, and is then read back alike.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  std::string written;
  try {
    written = sim::run_log_bytes(sim::parse_run_log(with_checksum(std::string(fuzz::text_of(data, size))), "run.rlog"));
  } catch (const sim::RunLogError&) {
    return 0;
  }
  fuzz::require(sim::run_log_bytes(sim::parse_run_log(written, "run.rlog")) == written, "run logs are read as written");
  return 0;
}
