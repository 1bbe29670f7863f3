// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <utility>

#include <c10/util/Exception.h>
#include <rehearse/graph/exported_program.h>
#include <rehearse/graph/text.h>

#include "cli/split/pieces.h"
#include "fuzz_files/input.h"

// A program of torch.export as JSON, which the command `split` splits and shows.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  graph::ExportedProgram program;
  try {
    program = graph::parse_exported_program(fuzz::text_of(data, size));
  } catch (const graph::ImportError&) {
    return 0;
  }
  try {
    const auto split = cli::split_model(std::move(program), {100, 10, parallel::CountingRules::ddp()}, "ddp");
    cli::as_text(split, "model.json");
    cli::as_json(split, "model.json");
    for (const auto& piece : split.pieces) graph::to_text(*piece.module);
  } catch (const graph::GraphError&) {
  } catch (const c10::ValueError&) {
  }
  return 0;
}
