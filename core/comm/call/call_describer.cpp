// SPDX-License-Identifier: BSD-3-Clause
#include "call_describer.h"

#include "fill_operation.h"

namespace rehearse::comm {

void CallDescriber::broadcast(const Tensors& tensors, const c10d::BroadcastOptions& options, Operation& call) const {
  const ArgumentChecks check("broadcast", size_);
  check.root(options.rootRank, options.rootTensor);
  const auto& tensor = check.single(tensors);
  check.filled(tensor);
  call.root = static_cast<int>(options.rootRank);
  call.inputs.push_back(tensor);
  call.outputs.push_back(tensor);
}

void CallDescriber::allreduce(const Tensors& tensors, const c10d::AllreduceOptions& options, Operation& call) const {
  const ArgumentChecks check("allreduce", size_);
  if (tensors.empty()) check.fail("requires non-empty tensor list");
  const auto& tensor = check.only(tensors);
  if (!tensor.is_sparse()) {
    check.dense(tensor);
    check.filled(tensor);
  }
  fill_allreduce(tensor, options.reduceOp, call);
}

void CallDescriber::reduce(const Tensors& tensors, const c10d::ReduceOptions& options, Operation& call) const {
  const ArgumentChecks check("reduce", size_);
  check.root(options.rootRank, options.rootTensor);
  const auto& tensor = check.single(tensors);
  check.filled(tensor);
  call.root = static_cast<int>(options.rootRank);
  set_reduce_op(options.reduceOp, call);
  call.inputs.push_back(tensor);
  call.outputs.push_back(tensor);
}

void CallDescriber::allgather(const TensorLists& outputs, const Tensors& inputs, Operation& call) const {
  const ArgumentChecks check("allgather", size_);
  const auto& input = check.single(inputs, "input tensor list");
  fill_allgather(check, check.gathered_by_all(outputs), input, rank_, call);
}

void CallDescriber::allgather_base(const at::Tensor& output, const at::Tensor& input, Operation& call) const {
  fill_allgather_base({"_allgather_base", size_}, output, input, call);
}

void CallDescriber::gather(const TensorLists& outputs, const Tensors& inputs, const c10d::GatherOptions& options,
                           Operation& call) const {
  const ArgumentChecks check("gather", size_);
  check.root(options.rootRank);
  const auto& input = check.single(inputs, "input tensor list");
  call.root = static_cast<int>(options.rootRank);
  call.inputs.push_back(input);
  if (rank_ == call.root) {
    const auto& list = check.one_for_each_rank(outputs, true);
    check.same_type(input, list);
    check.same_sizes(input, list);
    call.outputs.assign(list.begin(), list.end());
  } else if (!outputs.empty()) {
    check.fail("requires empty output on non-root");
  }
}

void CallDescriber::scatter(const Tensors& outputs, const TensorLists& inputs, const c10d::ScatterOptions& options,
                            Operation& call) const {
  const ArgumentChecks check("scatter", size_);
  check.root(options.rootRank);
  const auto& output = check.single(outputs, "output tensor list");
  check.filled(output);
  call.root = static_cast<int>(options.rootRank);
  call.outputs.push_back(output);
  if (rank_ == call.root) {
    const auto& list = check.one_for_each_rank(inputs, false);
    check.same_type(output, list);
    check.same_sizes(output, list);
    for (const auto& input : list) check.filled(input);
    for (std::size_t i = 0; i < list.size(); ++i) check.same_layout(output, list[i], i);
    call.inputs.assign(list.begin(), list.end());
  } else if (!inputs.empty()) {
    check.fail("requires empty input on non-root");
  }
}

void CallDescriber::reduce_scatter(const Tensors& outputs, const TensorLists& inputs,
                                   const c10d::ReduceScatterOptions& options, Operation& call) const {
  const ArgumentChecks check("reduce_scatter", size_);
  const auto& output = check.single(outputs, "output tensor list");
  const auto& list = check.one_for_each_rank(inputs, false);
  check.same_type(output, list);
  check.same_count(output, list[static_cast<std::size_t>(rank_)], rank_);
  check.filled(output);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].sizes() == output.sizes()) check.same_layout(output, list[i], i);
  }
  set_reduce_op(options.reduceOp, call);
  call.inputs.assign(list.begin(), list.end());
  call.outputs.push_back(output);
}

void CallDescriber::reduce_scatter_base(const at::Tensor& output, const at::Tensor& input,
                                        const c10d::ReduceScatterOptions& options, Operation& call) const {
  fill_reduce_scatter_base({"_reduce_scatter_base", size_}, output, input, options.reduceOp, call);
}

}  // namespace rehearse::comm
