// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/comm/functional.h>

#include <ATen/WrapDimUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

namespace rehearse::functional {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

template <class Signature>
auto find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

bool wants_gradient(const at::Tensor& input) { return c10::GradMode::is_enabled() && input.requires_grad(); }

c10d::ProcessGroup& checked(const ProcessGroup& group, const char* call) {
  TORCH_CHECK_VALUE(group != nullptr, call, ": the group is empty; is the calling rank a member?");
  return *group;
}

void check_has_gradient(const std::string& reduce_op, const char* call) {
  TORCH_CHECK_NOT_IMPLEMENTED(reduce_op == "sum" || reduce_op == "avg", call, ": no gradient for reduce_op \"",
                              reduce_op, "\"; there is one for \"sum\" and \"avg\"");
}

at::Tensor all_reduce_now(const at::Tensor& input, const std::string& reduce_op, const std::string& group) {
  static const auto call =
      find_operator<at::Tensor(const at::Tensor&, std::string, std::string)>("_c10d_functional::all_reduce");
  return wait_tensor(call.call(input.contiguous(), reduce_op, group));
}

at::Tensor broadcast_now(const at::Tensor& input, std::int64_t root, const std::string& group) {
  static const auto call =
      find_operator<at::Tensor(const at::Tensor&, std::int64_t, std::string)>("_c10d_functional::broadcast");
  return wait_tensor(call.call(input.contiguous(), root, group));
}

// LibTorch has no gradients of these two. As in torch.distributed.nn.functional.
struct AllReduce : Function<AllReduce> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const std::string& reduce_op,
                            const std::string& group) {
    context->saved_data["reduce_op"] = reduce_op;
    context->saved_data["group"] = group;
    return all_reduce_now(input, reduce_op, group);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    auto& saved = context->saved_data;
    // As a call of its own, so that gradients of gradients exist.
    return {AllReduce::apply(gradients[0], saved["reduce_op"].toStringRef(), saved["group"].toStringRef()), {}, {}};
  }
};

struct Broadcast : Function<Broadcast> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, std::int64_t root, bool is_root,
                            const std::string& group) {
    context->saved_data["is_root"] = is_root;
    context->saved_data["group"] = group;
    return broadcast_now(input, root, group);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    auto& saved = context->saved_data;
    const auto sum = AllReduce::apply(gradients[0], std::string("sum"), saved["group"].toStringRef());
    return {saved["is_root"].toBool() ? sum : at::zeros_like(sum), {}, {}, {}};
  }
};

// LibTorch's gradients call the operators, which want contiguous tensors, with what the engine hands them.
at::Tensor wait_with_gradient(const at::Tensor& launched) {
  launched.register_hook([](const at::Tensor& gradient) { return gradient.contiguous(); });
  return wait_tensor(launched);
}

// The operators with gradients take their strings by reference: to the dispatcher another signature.
at::Tensor all_gather_now(const at::Tensor& input, const c10d::ProcessGroup& group, bool with_gradient) {
  static const auto plain = find_operator<at::Tensor(const at::Tensor&, std::int64_t, std::string)>(
      "_c10d_functional::all_gather_into_tensor");
  static const auto differentiable = find_operator<at::Tensor(const at::Tensor&, std::int64_t, const std::string&)>(
      "_c10d_functional_autograd::all_gather_into_tensor");
  const std::string& name = group.getGroupName();
  if (with_gradient) return wait_with_gradient(differentiable.call(input, group.getSize(), name));
  return wait_tensor(plain.call(input, group.getSize(), name));
}

at::Tensor reduce_scatter_now(const at::Tensor& input, const std::string& reduce_op, const c10d::ProcessGroup& group,
                              bool with_gradient) {
  static const auto plain = find_operator<at::Tensor(const at::Tensor&, std::string, std::int64_t, std::string)>(
      "_c10d_functional::reduce_scatter_tensor");
  static const auto differentiable =
      find_operator<at::Tensor(const at::Tensor&, const std::string&, std::int64_t, const std::string&)>(
          "_c10d_functional_autograd::reduce_scatter_tensor");
  const std::string& name = group.getGroupName();
  if (with_gradient) return wait_with_gradient(differentiable.call(input, reduce_op, group.getSize(), name));
  return wait_tensor(plain.call(input, reduce_op, group.getSize(), name));
}

at::Tensor all_to_all_now(const at::Tensor& input, c10::SymIntArrayRef output_splits, c10::SymIntArrayRef input_splits,
                          const std::string& group, bool with_gradient) {
  static const auto plain =
      find_operator<at::Tensor(const at::Tensor&, c10::SymIntArrayRef, c10::SymIntArrayRef, std::string)>(
          "_c10d_functional::all_to_all_single");
  static const auto differentiable =
      find_operator<at::Tensor(const at::Tensor&, c10::SymIntArrayRef, c10::SymIntArrayRef, const std::string&)>(
          "_c10d_functional_autograd::all_to_all_single");
  if (with_gradient) return wait_with_gradient(differentiable.call(input, output_splits, input_splits, group));
  return wait_tensor(plain.call(input, output_splits, input_splits, group));
}

void check_splits(const at::Tensor& input, const std::vector<std::int64_t>& splits, std::int64_t ranks,
                  const char* which) {
  TORCH_CHECK_VALUE(static_cast<std::int64_t>(splits.size()) == ranks, "all_to_all_single: ", which, " has ",
                    splits.size(), " entries; a group of ", ranks, " needs one for each rank");
  for (const auto split : splits) {
    TORCH_CHECK_VALUE(split >= 0, "all_to_all_single: ", which, " has ", split, "; it must not be negative");
  }
  if (std::string_view(which) != "input_splits") return;
  const auto sum = c10::sum_integers(splits);
  TORCH_CHECK_VALUE(sum == input.size(0), "all_to_all_single: input_splits add up to ", sum, "; the input has ",
                    input.size(0), " rows");
}

}  // namespace

at::Tensor wait_tensor(const at::Tensor& tensor) {
  static const auto call = find_operator<at::Tensor(const at::Tensor&)>("_c10d_functional::wait_tensor");
  // It returns its argument, gradient and all; with grad mode on it would warn that it has no gradient of its own.
  const at::NoGradGuard as_it_is;
  return call.call(tensor);
}

at::Tensor all_reduce(const at::Tensor& input, const ProcessGroup& group, const std::string& reduce_op) {
  const std::string name = checked(group, "all_reduce").getGroupName();
  if (!wants_gradient(input)) return all_reduce_now(input, reduce_op, name);
  check_has_gradient(reduce_op, "all_reduce");
  return AllReduce::apply(input, reduce_op, name);
}

at::Tensor broadcast(const at::Tensor& input, const ProcessGroup& group, int root) {
  const auto& checked_group = checked(group, "broadcast");
  TORCH_CHECK_VALUE(root >= 0 && root < checked_group.getSize(), "broadcast: root is ", root,
                    "; the group has ranks 0 to ", checked_group.getSize() - 1);
  const std::string name = group->getGroupName();
  if (!wants_gradient(input)) return broadcast_now(input, root, name);
  return Broadcast::apply(input, static_cast<std::int64_t>(root), root == checked_group.getRank(), name);
}

at::Tensor all_gather_tensor(const at::Tensor& input, const ProcessGroup& group, std::int64_t gather_dim) {
  const auto ranks = checked(group, "all_gather_tensor").getSize();
  TORCH_CHECK_VALUE(input.dim() > 0, "all_gather_tensor: the input has no dimension to gather along");
  const auto dim = at::maybe_wrap_dim(gather_dim, input.dim());
  const auto gathered = all_gather_now(input.contiguous(), *group, wants_gradient(input));
  if (dim == 0 || ranks == 1) return gathered;
  return at::cat(gathered.tensor_split(ranks, 0), dim);
}

at::Tensor reduce_scatter_tensor(const at::Tensor& input, const ProcessGroup& group, const std::string& reduce_op,
                                 std::int64_t scatter_dim) {
  const auto ranks = checked(group, "reduce_scatter_tensor").getSize();
  TORCH_CHECK_VALUE(input.dim() > 0, "reduce_scatter_tensor: the input has no dimension to scatter along");
  const auto dim = at::maybe_wrap_dim(scatter_dim, input.dim());
  TORCH_CHECK_VALUE(input.size(dim) % ranks == 0, "reduce_scatter_tensor: dimension ", dim, " of the input has size ",
                    input.size(dim), "; it must be divisible by the ", ranks, " ranks of the group");
  const bool differentiable = wants_gradient(input);
  if (differentiable) check_has_gradient(reduce_op, "reduce_scatter_tensor");
  // LibTorch has the gradient of sums only; without a gradient the mean is made in the same way, for the same bits.
  const bool mean = reduce_op == "avg" && (input.is_floating_point() || input.is_complex());
  const auto parts = dim == 0 ? input : at::cat(input.tensor_split(ranks, dim), 0);
  const auto reduced = reduce_scatter_now(parts.contiguous(), mean ? "sum" : reduce_op, *group, differentiable);
  return mean ? reduced / ranks : reduced;
}

at::Tensor all_to_all_single(const at::Tensor& input, const ProcessGroup& group,
                             std::vector<std::int64_t> output_splits, std::vector<std::int64_t> input_splits) {
  const auto ranks = checked(group, "all_to_all_single").getSize();
  TORCH_CHECK_VALUE(input.dim() > 0, "all_to_all_single: the input has no dimension to split along");
  if (output_splits.empty() && input_splits.empty()) {
    TORCH_CHECK_VALUE(input.size(0) % ranks == 0, "all_to_all_single: the input has ", input.size(0),
                      " rows; without splits they must be divisible by the ", ranks, " ranks of the group");
    output_splits.assign(static_cast<std::size_t>(ranks), input.size(0) / ranks);
    input_splits = output_splits;
  }
  check_splits(input, output_splits, ranks, "output_splits");
  check_splits(input, input_splits, ranks, "input_splits");
  return all_to_all_now(input.contiguous(), c10::fromIntArrayRefSlow(output_splits),
                        c10::fromIntArrayRefSlow(input_splits), group->getGroupName(), wants_gradient(input));
}

}  // namespace rehearse::functional
