// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/comm/functional.h>

#include <memory>
#include <utility>

#include <ATen/WrapDimUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>

#include <rehearse_internal/libtorch/nodes.h>
#include <rehearse_internal/operators/capture_mode.h>
#include <rehearse_internal/operators/collective_gradients.h>
#include <rehearse_internal/operators/group_use.h>

namespace rehearse::functional {
namespace {

using torch::autograd::variable_list;

c10::OperatorHandle find_operator(const char* name) { return c10::Dispatcher::singleton().findSchemaOrThrow(name, ""); }

// Groups of other back ends than ours need the gradients, too.
c10::OperatorHandle differentiable_operator(const char* name) {
  operators::register_collective_gradients();
  return find_operator(name);
}

// Calls the operator boxed, because a typed call takes half a second to compile for each signature.
at::Tensor call(const c10::OperatorHandle& op, torch::jit::Stack arguments) {
  op.callBoxed(arguments);
  return std::move(arguments.at(0)).toTensor();
}

bool wants_gradient(const at::Tensor& input) { return c10::GradMode::is_enabled() && input.requires_grad(); }

c10d::ProcessGroup& checked(const ProcessGroup& group, const char* call) {
  operators::note_group_use(&group, group.get());
  TORCH_CHECK_VALUE(group != nullptr, call, ": the group is null; is this rank no member of it?");
  return *group;
}

void check_has_gradient(const std::string& reduce_op, const char* call) {
  TORCH_CHECK_NOT_IMPLEMENTED(reduce_op == "sum" || reduce_op == "avg", call, ": no gradient for reduce_op \"",
                              reduce_op, "\"; there is one for \"sum\" and \"avg\"");
}

at::Tensor all_reduce_now(const at::Tensor& input, const std::string& reduce_op, const std::string& group) {
  static const auto op = find_operator("_c10d_functional::all_reduce");
  return wait_tensor(call(op, {input.contiguous(), reduce_op, group}));
}

at::Tensor broadcast_now(const at::Tensor& input, std::int64_t root, const std::string& group) {
  static const auto op = find_operator("_c10d_functional::broadcast");
  return wait_tensor(call(op, {input.contiguous(), root, group}));
}

// Computes the gradients of all_reduce() and broadcast() as torch.distributed.nn.functional does; LibTorch has no
// formulas for them. The nodes are written by hand, because torch::autograd::Function takes five seconds to compile.
class CollectiveBackward : public torch::autograd::Node {
 public:
  explicit CollectiveBackward(std::string group) : group_(std::move(group)) {}

  variable_list apply(variable_list&& gradients) override {
    // Other ranks wait for this rank's call, even if its loss does not depend on the output.
    if (!gradients[0].defined()) gradients[0] = input_metadata(0).zeros_like();
    return {input_gradient(gradients[0])};
  }

 protected:
  const std::string& group() const { return group_; }

 private:
  virtual at::Tensor input_gradient(const at::Tensor& gradient) const = 0;

  const std::string group_;
};

// Returns the output of `compute`, with `node` as its autograd node.
template <class Compute>
at::Tensor with_backward(const libtorch::NodePtr& node, const at::Tensor& input, Compute&& compute) {
  operators::end_capture("a collective with a gradient", "Give it a tensor that requires no gradient.");
  TORCH_CHECK_NOT_IMPLEMENTED(!input._fw_grad(/*level=*/0).defined(), node->name(),
                              ": a collective has no forward-mode gradient");
  node->set_next_edges(torch::autograd::collect_next_edges(input));
  at::Tensor output;
  {
    const at::NoGradGuard no_grad;
    output = compute();
  }
  torch::autograd::create_gradient_edge(output, node);
  return output;
}

at::Tensor differentiable_all_reduce(const at::Tensor& input, const std::string& reduce_op, const std::string& group);

class AllReduceBackward : public CollectiveBackward {
 public:
  AllReduceBackward(std::string reduce_op, std::string group)
      : CollectiveBackward(std::move(group)), reduce_op_(std::move(reduce_op)) {}
  std::string name() const override { return "AllReduceBackward"; }

 private:
  at::Tensor input_gradient(const at::Tensor& gradient) const override {
    return differentiable_all_reduce(gradient, reduce_op_, group());
  }

  const std::string reduce_op_;
};

class BroadcastBackward : public CollectiveBackward {
 public:
  BroadcastBackward(bool is_root, std::string group) : CollectiveBackward(std::move(group)), is_root_(is_root) {}
  std::string name() const override { return "BroadcastBackward"; }

 private:
  at::Tensor input_gradient(const at::Tensor& gradient) const override {
    const auto sum = differentiable_all_reduce(gradient, "sum", group());
    return is_root_ ? sum : at::zeros_like(sum);
  }

  const bool is_root_;
};

// AllReduceBackward and BroadcastBackward call this, so that gradients of gradients exist.
at::Tensor differentiable_all_reduce(const at::Tensor& input, const std::string& reduce_op, const std::string& group) {
  if (!wants_gradient(input)) return all_reduce_now(input, reduce_op, group);
  return with_backward(libtorch::make_node<AllReduceBackward>(reduce_op, group), input,
                       [&] { return all_reduce_now(input, reduce_op, group); });
}

// LibTorch's gradient formulas pass the engine's gradients on to operators that need contiguous tensors, so a hook
// makes the gradients contiguous.
at::Tensor wait(const at::Tensor& launched, bool with_gradient) {
  if (with_gradient) {
    launched.register_hook(
        [](const at::Tensor& gradient) { return gradient.defined() ? gradient.contiguous() : gradient; });
  }
  return wait_tensor(launched);
}

at::Tensor all_gather_now(const at::Tensor& input, const c10d::ProcessGroup& group, bool with_gradient) {
  static const auto plain = find_operator("_c10d_functional::all_gather_into_tensor");
  static const auto differentiable = differentiable_operator("_c10d_functional_autograd::all_gather_into_tensor");
  const auto& op = with_gradient ? differentiable : plain;
  return wait(call(op, {input, group.getSize(), group.getGroupName()}), with_gradient);
}

at::Tensor reduce_scatter_now(const at::Tensor& input, const std::string& reduce_op, const c10d::ProcessGroup& group,
                              bool with_gradient) {
  static const auto plain = find_operator("_c10d_functional::reduce_scatter_tensor");
  static const auto differentiable = differentiable_operator("_c10d_functional_autograd::reduce_scatter_tensor");
  const auto& op = with_gradient ? differentiable : plain;
  return wait(call(op, {input, reduce_op, group.getSize(), group.getGroupName()}), with_gradient);
}

at::Tensor all_to_all_now(const at::Tensor& input, const std::vector<std::int64_t>& output_splits,
                          const std::vector<std::int64_t>& input_splits, const std::string& group, bool with_gradient) {
  static const auto plain = find_operator("_c10d_functional::all_to_all_single");
  static const auto differentiable = differentiable_operator("_c10d_functional_autograd::all_to_all_single");
  const auto& op = with_gradient ? differentiable : plain;
  return wait(call(op, {input, output_splits, input_splits, group}), with_gradient);
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
  static const auto op = find_operator("_c10d_functional::wait_tensor");
  // The operator returns its argument, with the argument's history. If grad mode were on, LibTorch would warn that the
  // operator has no gradient of its own.
  const at::NoGradGuard as_it_is;
  return call(op, {tensor});
}

at::Tensor all_reduce(const at::Tensor& input, const ProcessGroup& group, const std::string& reduce_op) {
  const std::string name = checked(group, "all_reduce").getGroupName();
  if (wants_gradient(input)) check_has_gradient(reduce_op, "all_reduce");
  return differentiable_all_reduce(input, reduce_op, name);
}

at::Tensor broadcast(const at::Tensor& input, const ProcessGroup& group, int root) {
  const auto& checked_group = checked(group, "broadcast");
  TORCH_CHECK_VALUE(root >= 0 && root < checked_group.getSize(), "broadcast: root is ", root,
                    "; the group has ranks 0 to ", checked_group.getSize() - 1);
  const std::string name = group->getGroupName();
  if (!wants_gradient(input)) return broadcast_now(input, root, name);
  return with_backward(libtorch::make_node<BroadcastBackward>(root == checked_group.getRank(), name), input,
                       [&] { return broadcast_now(input, root, name); });
}

at::Tensor all_gather_tensor(const at::Tensor& input, const ProcessGroup& group, std::int64_t gather_dim) {
  const auto ranks = checked(group, "all_gather_tensor").getSize();
  TORCH_CHECK_VALUE(input.dim() > 0, "all_gather_tensor: the input has no dimension to gather along");
  const auto dim = at::maybe_wrap_dim(gather_dim, input.dim());
  auto gathered = all_gather_now(input.contiguous(), *group, wants_gradient(input));
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
  // LibTorch has a gradient only for sums, so compute a mean as a sum and a division. Do so even if no gradient is
  // needed, so that the results have the same bits.
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
  return all_to_all_now(input.contiguous(), output_splits, input_splits, group->getGroupName(), wants_gradient(input));
}

}  // namespace rehearse::functional
