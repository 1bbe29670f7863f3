// SPDX-License-Identifier: BSD-3-Clause
#include "capture/fake/infer/infer.h"

#include <algorithm>

#include <rehearse_internal/capture/fake_errors.h>
#include "capture/fake/infer/below_autograd.h"

namespace rehearse::capture {
namespace {

bool gives_no_tensor(const OperatorFacts& facts) {
  return std::none_of(facts.returns.begin(), facts.returns.end(),
                      [](const ReturnFacts& result) { return result.is_tensor || result.is_tensor_list; });
}

bool gives_arguments_only(const OperatorFacts& facts) {
  return std::all_of(facts.returns.begin(), facts.returns.end(),
                     [](const ReturnFacts& result) { return result.is_argument; });
}

// The kernels of is_set_to() and is_pinned() work on fakes, because they read no data.
Outputs ask_kernel(const Call& call) {
  BelowAutograd guard;
  const FakeMode::Pause kernel;  // without it the call would come back here
  torch::jit::Stack stack(call.arguments.begin(), call.arguments.end());
  call.facts.handle.callBoxed(stack);
  return outputs_of(call.facts, stack, c10::Device(c10::kCPU));
}

Outputs counted(std::uint64_t& count, Outputs outputs) {
  ++count;
  return outputs;
}

}  // namespace

Outputs infer(const Call& call) {
  const OperatorFacts& facts = call.facts;
  InferenceCounts& counts = call.mode.inference_counts();
  if (facts.rule) {
    ++counts.rule;
    return facts.rule(call);
  }
  if (facts.has_data_dependent_size) throw DataDependentRead(facts.name, exec::CallSite::capture());
  if (gives_no_tensor(facts)) return facts.returns.empty() ? Outputs() : ask_kernel(call);
  if (gives_arguments_only(facts) && !facts.changes_geometry) {
    ++counts.in_place;
    return infer_in_place(call);
  }
  const bool is_static = !has_symbols(call);
  if (is_static && facts.has_meta_kernel) {
    if (auto outputs = try_on_meta(call)) return counted(counts.meta, *std::move(outputs));
  }
  if (facts.is_pointwise) return counted(counts.pointwise, infer_pointwise(call));
  if (!is_static && facts.has_meta_kernel) {
    if (auto outputs = try_on_meta(call)) return counted(counts.meta, *std::move(outputs));
  }
  return counted(counts.sampled, infer_by_sampling(call));
}

}  // namespace rehearse::capture
