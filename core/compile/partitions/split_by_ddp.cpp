// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/compile/split_by_ddp.h>

#include <map>
#include <stdexcept>
#include <utility>

#include "compile/partitions/compile_partitions.h"
#include "compile/partitions/layout_use.h"
#include "compile/partitions/memory_classes.h"

namespace rehearse::compiler {

SplitByDdp::SplitByDdp(parallel::DdpBuckets caps, std::shared_ptr<Backend> inner)
    : caps_(std::move(caps)), inner_(std::move(inner)) {
  if (!inner_) throw std::invalid_argument("SplitByDdp: the inner back end is null");
}

CompiledGraph SplitByDdp::compile(const BackendInput& input) {
  buckets_.clear();
  pieces_.clear();
  module_ = input.module;
  if (!is_as_recorded(input)) return inner_->compile(input);
  // Example inputs share a storage if the inputs that they represent share memory.
  CompiledPartitions parts =
      compile_partitions(input.module, input.shapes, *inner_, {.buckets = &caps_}, memory_of(input.example_inputs));
  for (const GraphExplanation& piece : parts.graphs) {
    if (!piece.eager_because.empty() && input.note_eager) input.note_eager(piece.name + ": " + piece.eager_because);
  }
  buckets_ = std::move(parts.buckets);
  pieces_ = std::move(parts.graphs);
  return {std::move(parts.run.run), recorded_outputs(*input.module)};
}

}  // namespace rehearse::compiler
