// SPDX-License-Identifier: BSD-3-Clause
#include "fill_operation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse::comm {

void set_reduce_op(const c10d::ReduceOp& op, Operation& call) {
  call.reduce_op = op.op_;
  call.reduce_supplement = op.supplement_;
}

void fill_allreduce(const at::Tensor& tensor, const c10d::ReduceOp& op, Operation& call) {
  set_reduce_op(op, call);
  call.inputs.push_back(tensor);
  call.outputs.push_back(tensor);
}

void fill_allgather(const ArgumentChecks& check, const ArgumentChecks::Tensors& outputs, const at::Tensor& input,
                    int rank, Operation& call) {
  check.same_type(input, outputs);
  check.same_count(input, outputs[static_cast<std::size_t>(rank)], rank);
  call.inputs.push_back(input);
  call.outputs.assign(outputs.begin(), outputs.end());
}

void fill_allgather_base(const ArgumentChecks& check, const at::Tensor& output, const at::Tensor& input,
                         Operation& call) {
  check.base_pair(output, input, "output tensor size must be equal to world_size times input tensor size",
                  "output tensor must have the same type as input tensor");
  call.inputs.push_back(input);
  call.outputs.push_back(output);
}

void fill_reduce_scatter_base(const ArgumentChecks& check, const at::Tensor& output, const at::Tensor& input,
                              const c10d::ReduceOp& op, Operation& call) {
  check.base_pair(input, output, "input tensor must be the same size as output size times world size",
                  "input tensor must be the same type as the output tensor.");
  set_reduce_op(op, call);
  call.inputs.push_back(input);
  call.outputs.push_back(output);
}

}  // namespace rehearse::comm
