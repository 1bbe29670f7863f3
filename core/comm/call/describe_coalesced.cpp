// SPDX-License-Identifier: BSD-3-Clause
// Calls that combine several operations. The texts of the checks are those of ProcessGroupGloo.
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/comm/coalescing.h>

#include "call_describer.h"
#include "fill_operation.h"

namespace rehearse::comm {
namespace {

using c10d::OpType;
using Tensors = ArgumentChecks::Tensors;

void check_list(const ArgumentChecks& check, const Tensors& tensors, const char* list = "tensor list") {
  if (tensors.empty()) check.fail(fmt::format("requires non-empty {}", list));
  for (const auto& tensor : tensors) check.dense(tensor);
}

void check_lists(const ArgumentChecks& check, const Tensors& outputs, const Tensors& inputs) {
  if (outputs.size() != inputs.size()) check.fail("requires input/output tensor lists to have the same length");
  check_list(check, inputs);
}

Operation part_of(OpType type) {
  Operation part;
  part.type = type;
  return part;
}

void check_outputs(const ArgumentChecks& check, const CallDescriber::TensorLists& outputs, const Tensors& inputs,
                   int size) {
  if (outputs.size() != static_cast<std::size_t>(size)) check.fail("output lists should be equal to world size");
  for (const auto& list : outputs) {
    if (list.size() != inputs.size()) {
      check.fail(fmt::format("invalid output size: (expected length {}, got {})", inputs.size(), list.size()));
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      check.dense(list[i]);
      if (list[i].sizes() != inputs[i].sizes()) {
        check.fail(fmt::format("invalid size of output tensor at index {} (expected length [{}], got [{}])", i,
                               fmt::join(inputs[i].sizes(), ", "), fmt::join(list[i].sizes(), ", ")));
      }
    }
  }
}

}  // namespace

void CallDescriber::allreduce_coalesced(const Tensors& tensors, const c10d::AllreduceCoalescedOptions& options,
                                        Operation& call) const {
  const ArgumentChecks check("allreduce_coalesced", size_);
  check_list(check, tensors);
  for (const auto& tensor : tensors) {
    if (tensor.scalar_type() != tensors.front().scalar_type()) check.fail("tensors must all have the same type");
    if (tensor.device() != tensors.front().device()) check.fail("tensors must all be on the same device");
  }
  for (const auto& tensor : tensors) {
    auto part = part_of(OpType::ALLREDUCE);
    fill_allreduce(tensor, options.reduceOp, part);
    part.tag = Operation::kCopied;
    add_part(call, std::move(part));
  }
}

void CallDescriber::allgather_coalesced(const TensorLists& outputs, const Tensors& inputs, Operation& call) const {
  const ArgumentChecks check("allgather_coalesced", size_);
  check_list(check, inputs, "input tensor list");
  check_outputs(check, outputs, inputs, size_);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensors of_ranks;
    for (const auto& list : outputs) of_ranks.push_back(list[i]);
    auto part = part_of(OpType::ALLGATHER);
    fill_allgather(check, of_ranks, inputs[i], rank_, part);
    add_part(call, std::move(part));
  }
}

void CallDescriber::allgather_into_tensor_coalesced(const Tensors& outputs, const Tensors& inputs,
                                                    Operation& call) const {
  const ArgumentChecks check("allgather_into_tensor_coalesced", size_);
  check_lists(check, outputs, inputs);
  call.tag = Operation::kAllgatherIntoTensor;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto part = part_of(OpType::_ALLGATHER_BASE);
    fill_allgather_base(check, outputs[i], inputs[i], part);
    add_part(call, std::move(part));
  }
}

void CallDescriber::reduce_scatter_tensor_coalesced(const Tensors& outputs, const Tensors& inputs,
                                                    const c10d::ReduceScatterOptions& options, Operation& call) const {
  const ArgumentChecks check("reduce_scatter_tensor_coalesced", size_);
  check_lists(check, outputs, inputs);
  call.tag = Operation::kReduceScatterTensor;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto part = part_of(OpType::_REDUCE_SCATTER_BASE);
    fill_reduce_scatter_base(check, outputs[i], inputs[i], options.reduceOp, part);
    add_part(call, std::move(part));
  }
}

}  // namespace rehearse::comm
