// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/compile/split_by_ddp.h>

#include <map>
#include <stdexcept>
#include <utility>

#include "compile/partitions/compile_partitions.h"
#include "compile/partitions/layout_use.h"

namespace rehearse::compiler {
namespace {

// Examples share a storage if the inputs for which they stand share memory.
InputMemory memory_of_examples(const std::vector<c10::IValue>& examples) {
  InputMemory memory;
  for (const c10::IValue& example : examples) {
    const bool has_memory = example.isTensor() && example.toTensor().defined() && example.toTensor().has_storage();
    memory.push_back(has_memory ? example.toTensor().storage().unsafeGetStorageImpl() : nullptr);
  }
  return memory;
}

}  // namespace

SplitByDdp::SplitByDdp(parallel::DdpBuckets caps, std::shared_ptr<Backend> inner)
    : caps_(std::move(caps)), inner_(std::move(inner)) {
  if (!inner_) throw std::invalid_argument("SplitByDdp: the inner back end is null");
}

CompiledGraph SplitByDdp::compile(const BackendInput& input) {
  buckets_.clear();
  pieces_.clear();
  module_ = input.module;
  if (!is_as_recorded(input)) return inner_->compile(input);
  CompiledPartitions parts = compile_partitions(input.module, input.shapes, *inner_, {.buckets = &caps_},
                                                memory_of_examples(input.example_inputs));
  for (const GraphExplanation& piece : parts.graphs) {
    if (!piece.eager_because.empty() && input.note_eager) input.note_eager(piece.name + ": " + piece.eager_because);
  }
  buckets_ = std::move(parts.buckets);
  pieces_ = std::move(parts.graphs);
  return {std::move(parts.run.run), recorded_outputs(*input.module)};
}

}  // namespace rehearse::compiler
