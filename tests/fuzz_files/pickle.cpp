// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>

#include "dumps/dump.h"
#include "dumps/pickle.h"
#include "dumps/read_dump.h"
#include "dumps/stacks.h"
#include "fuzz_files/input.h"

// The dump of rank 0 as a pickle.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  try {
    const auto value = sim::unpickled(fuzz::text_of(data, size));
    sim::Stacks stacks;
    sim::read_dump(sim::Field(value), "dump_rank_0", 0, stacks);
  } catch (const sim::PickleError&) {
  } catch (const sim::DumpError&) {
  }
  return 0;
}
