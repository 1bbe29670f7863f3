// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/comm/async_tensor.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>

#include <rehearse_internal/operators/group_use.h>

namespace rehearse::functional {
namespace {

// Calls the operator boxed, for the reason that functional.cpp gives.
AsyncTensor launch(const char* name, torch::jit::Stack arguments) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(arguments);
  return AsyncTensor(std::move(arguments.at(0)).toTensor());
}

c10d::ProcessGroup& checked_group(const ProcessGroup& group, const at::Tensor& input, const std::string& call) {
  operators::note_group_use(&group, group.get());
  TORCH_CHECK_VALUE(group != nullptr, call, "_async: the group is null; is this rank no member of it?");
  TORCH_CHECK_NOT_IMPLEMENTED(!c10::GradMode::is_enabled() || !input.requires_grad(), call,
                              "_async has no gradient, but the input requires one; call ", call,
                              "(), or pass input.detach()");
  return *group;
}

std::int64_t ranks_for_rows(const c10d::ProcessGroup& group, const at::Tensor& input, const char* call) {
  TORCH_CHECK_VALUE(input.dim() > 0, call, "_async: the input has no dimension 0");
  return group.getSize();
}

}  // namespace

AsyncTensor all_reduce_async(const at::Tensor& input, const ProcessGroup& group, const std::string& reduce_op) {
  const auto& checked = checked_group(group, input, "all_reduce");
  return launch("_c10d_functional::all_reduce", {input.contiguous(), reduce_op, checked.getGroupName()});
}

AsyncTensor all_gather_tensor_async(const at::Tensor& input, const ProcessGroup& group) {
  const auto& checked = checked_group(group, input, "all_gather_tensor");
  const std::int64_t ranks = ranks_for_rows(checked, input, "all_gather_tensor");
  return launch("_c10d_functional::all_gather_into_tensor", {input.contiguous(), ranks, checked.getGroupName()});
}

AsyncTensor reduce_scatter_tensor_async(const at::Tensor& input, const ProcessGroup& group,
                                        const std::string& reduce_op) {
  const auto& checked = checked_group(group, input, "reduce_scatter_tensor");
  const std::int64_t ranks = ranks_for_rows(checked, input, "reduce_scatter_tensor");
  TORCH_CHECK_VALUE(input.size(0) % ranks == 0, "reduce_scatter_tensor_async: dimension 0 of the input has size ",
                    input.size(0), "; it must be divisible by the ", ranks, " ranks of the group");
  return launch("_c10d_functional::reduce_scatter_tensor",
                {input.contiguous(), reduce_op, ranks, checked.getGroupName()});
}

}  // namespace rehearse::functional
