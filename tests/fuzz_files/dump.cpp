// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>

#include <rehearse/sim/report_writers.h>

#include "dumps/dump.h"
#include "dumps/explain_dumps.h"
#include "fuzz_files/input.h"

// A dump in a file: that of rank 0, as a pickle or as JSON, or that of all ranks, as JSON.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  try {
    sim::to_text(sim::explain_dumps({fuzz::file_of(fuzz::text_of(data, size))}));
  } catch (const sim::DumpError&) {
  }
  return 0;
}
