// SPDX-License-Identifier: BSD-3-Clause
// Calls that are several operations in one. The texts of the checks are those of ProcessGroupGloo.
#include <fmt/format.h>
#include <fmt/ranges.h>

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

Operation& add_part(Operation& call, OpType type) {
  auto& part = call.parts.emplace_back();
  part.type = type;
  return part;
}

// Inputs and outputs of a call with parts are those of the parts.
void gather_tensors(Operation& call) {
  for (const auto& part : call.parts) {
    call.inputs.append(part.inputs.begin(), part.inputs.end());
    call.outputs.append(part.outputs.begin(), part.outputs.end());
  }
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
    auto& part = add_part(call, OpType::ALLREDUCE);
    fill_allreduce(tensor, options.reduceOp, part);
    part.tag = Operation::kCopied;
  }
  gather_tensors(call);
}

void CallDescriber::allgather_coalesced(const TensorLists& outputs, const Tensors& inputs, Operation& call) const {
  const ArgumentChecks check("allgather_coalesced", size_);
  check_list(check, inputs, "input tensor list");
  check_outputs(check, outputs, inputs, size_);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensors of_ranks;
    for (const auto& list : outputs) of_ranks.push_back(list[i]);
    fill_allgather(check, of_ranks, inputs[i], rank_, add_part(call, OpType::ALLGATHER));
  }
  gather_tensors(call);
}

void CallDescriber::allgather_into_tensor_coalesced(const Tensors& outputs, const Tensors& inputs,
                                                    Operation& call) const {
  const ArgumentChecks check("allgather_into_tensor_coalesced", size_);
  check_lists(check, outputs, inputs);
  call.tag = Operation::kAllgatherIntoTensor;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    fill_allgather_base(check, outputs[i], inputs[i], add_part(call, OpType::_ALLGATHER_BASE));
  }
  gather_tensors(call);
}

void CallDescriber::reduce_scatter_tensor_coalesced(const Tensors& outputs, const Tensors& inputs,
                                                    const c10d::ReduceScatterOptions& options, Operation& call) const {
  const ArgumentChecks check("reduce_scatter_tensor_coalesced", size_);
  check_lists(check, outputs, inputs);
  call.tag = Operation::kReduceScatterTensor;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    fill_reduce_scatter_base(check, outputs[i], inputs[i], options.reduceOp,
                             add_part(call, OpType::_REDUCE_SCATTER_BASE));
  }
  gather_tensors(call);
}

}  // namespace rehearse::comm
