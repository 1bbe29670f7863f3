// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recorders/operator_recorder.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/autocast_mode.h>
#include <ATen/core/List.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_assert_async.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/eq.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/shapes/shape_env.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "capture/fake/call/tensors_in.h"
#include "capture/fake/fake_impl.h"
#include "capture/trace/caller/call_stack.h"
#include "capture/trace/operators/kernel_errors.h"
#include "capture/trace/operators/requires_grad.h"
#include "capture/trace/recorders/operator_results.h"

namespace rehearse::capture {

using graph::Node;
using torch::jit::Stack;

namespace {

// Within an autocast region, autocast caches the casts of weights in one map for the whole process. Fakes must not
// enter it.
class WithoutCastCache {
 public:
  WithoutCastCache() : was_(at::autocast::is_autocast_cache_enabled()) {
    if (was_) at::autocast::set_autocast_cache_enabled(false);
  }
  ~WithoutCastCache() {
    if (was_) at::autocast::set_autocast_cache_enabled(true);
  }
  WithoutCastCache(const WithoutCastCache&) = delete;
  WithoutCastCache& operator=(const WithoutCastCache&) = delete;

 private:
  const bool was_;
};

// Keys to exclude so that autograd gives the fakes neither histories nor versions.
constexpr c10::DispatchKeySet kAboveFakes =
    c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::DispatchKeySet(c10::DispatchKey::DeferredInit);

constexpr const char* kHasNaN =
    "the graph compares a tensor with itself by equal(), and the tensor has a NaN now, which is equal to nothing. One "
    "graph holds only the code for equal tensors: compile without fullgraph, or do not call equal()";

// Leaves out tensors without a version: undefined ones, and those of inference mode.
std::vector<std::uint32_t> versions_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::uint32_t> versions;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    const auto& version = tensor.unsafeGetTensorImpl()->version_counter();
    if (version.enabled()) versions.push_back(version.current_version());
  }
  return versions;
}

bool differ_in_size(const at::Tensor& left, const at::Tensor& right) {
  if (left.dim() != right.dim()) return true;
  for (std::int64_t dim = 0; dim < left.dim(); ++dim) {
    const auto of_left = left.sym_size(dim).maybe_as_int();
    const auto of_right = right.sym_size(dim).maybe_as_int();
    if (of_left && of_right && *of_left != *of_right) return true;
  }
  return false;
}

bool share_memory(const Stack& results, const Stack& arguments) {
  bool shared = false;
  const auto each = [](const Stack& values, const auto& visit) {
    for (const c10::IValue& value : values) for_each_tensor(value, visit);
  };
  each(results, [&](const at::Tensor& result) {
    each(arguments, [&](const at::Tensor& argument) { shared = shared || share_storage(result, argument); });
  });
  return shared;
}

struct Geometry {
  explicit Geometry(const at::Tensor& tensor)
      : sizes(tensor.sym_sizes().vec()), strides(tensor.sym_strides().vec()), offset(tensor.sym_storage_offset()) {}

  std::vector<c10::SymInt> sizes, strides;
  c10::SymInt offset;
};

// False also if a value is symbolic, because comparing symbols would add a guard.
bool are_known_to_equal(const Geometry& left, const Geometry& right) {
  const auto equal = [](const c10::SymInt& a, const c10::SymInt& b) {
    return a.maybe_as_int().has_value() && a.maybe_as_int() == b.maybe_as_int();
  };
  return std::ranges::equal(left.sizes, right.sizes, equal) && std::ranges::equal(left.strides, right.strides, equal) &&
         equal(left.offset, right.offset);
}

}  // namespace

void OperatorRecorder::evaluate(const c10::OperatorHandle& op, Stack& arguments) {
  const c10::impl::ExcludeDispatchKeyGuard below(kAboveFakes);
  const WithoutCastCache no_cache;
  call_kernels(op, arguments);
}

// If a tensor is no argument of the captured function, the code holds the real tensor. The operator changes the
// geometry of the fake only, but LibTorch answers questions like size() and dim() from the real tensor. So this
// function refuses a change of such a tensor's geometry.
void OperatorRecorder::evaluate_with_geometry(const c10::OperatorHandle& op, const Treatment& treatment,
                                              Stack& arguments) {
  if (!treatment.changes_geometry) return evaluate(op, arguments);
  const at::Tensor fake = arguments.front().toTensor();
  const Geometry before(fake);
  evaluate(op, arguments);
  const at::Tensor real = recording_.inputs.real_of(fake);
  if (!real.defined() || are_known_to_equal(before, Geometry(fake))) return;
  fake_impl(fake)->set_geometry(before.sizes, before.strides, before.offset);
  const std::string* const name = recording_.inputs.name_of(real);
  throw NotCapturable(treatment.name + "() changes the sizes or strides of " +
                          (name != nullptr ? "'" + *name + "'" : "a tensor that the function did not get") +
                          " inside of a captured function",
                      "Give the tensor as an argument, or use the operator that returns a view.",
                      recording_.graph.site());
}

// Runs the body of a rehearse::opaque() with autograd, so that the body behaves as in eager mode. The body gets its own
// fakes, and new fakes without a history replace its results. The fakes that the body gets are no leaves, because it
// may try to change them in place.
void OperatorRecorder::infer_opaque(const c10::OperatorHandle& op, Stack& stack) {
  const c10::impl::ExcludeDispatchKeyGuard untraced(c10::DispatchKey::DeferredInit);
  const auto apart = [](const c10::IValue& tensors) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : tensors.toTensorVector()) list.push_back(make_fake(spec_of(tensor), tensor));
    return list;
  };
  std::vector<at::Tensor> given;
  for (const at::Tensor& tensor : apart(stack.back()).vec()) {
    const bool has_history = tensor.defined() && tensor.requires_grad();
    given.push_back(has_history ? at::_unsafe_view_symint(tensor, tensor.sym_sizes()) : tensor);
  }
  const auto before = versions_of(given);
  stack.back() = c10::List<at::Tensor>(given);
  op.callBoxed(stack);
  if (versions_of(given) != before) {
    throw NotCapturable("the function of opaque() changes one of its tensors in place",
                        "Let it return a new tensor, or change the tensor outside of opaque().",
                        recording_.graph.site());
  }
  stack.back() = apart(stack.back());
}

// Some composite operators alias an argument although their schema does not say so: dropout() without training returns
// its argument, meshgrid() returns views. The schemas of their parts are right, so this function records the parts
// instead.
bool OperatorRecorder::record_parts(const c10::OperatorHandle& op, Stack& arguments) {
  if (!op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) return false;
  op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, arguments);
  for (c10::IValue& result : arguments) {
    if (!result.isTensor() || !is_fake(result.toTensor())) continue;
    if (const at::Tensor real = recording_.inputs.real_of(result.toTensor()); real.defined()) result = real;
  }
  return true;
}

void OperatorRecorder::record(const c10::OperatorHandle& op, const Treatment& treatment, Stack& arguments) {
  REHEARSE_CHECK(arguments.size() == op.schema().arguments().size(), treatment.target, arguments.size());
  recording_.modes.sync();
  CallArguments given = recording_.arguments_of(op.schema(), arguments);
  Stack results = arguments;
  if (treatment.kind == Treatment::Kind::Opaque) {
    infer_opaque(op, results);
  } else {
    evaluate_with_geometry(op, treatment, results);
    if (!treatment.tells_aliases && share_memory(results, arguments) && record_parts(op, arguments)) return;
    set_requires_grad(treatment, arguments, results);
  }
  Node& node = recording_.graph.call(treatment.target, std::move(given.args), std::move(given.kwargs));
  if (treatment.is_mutable) recording_.segments.note_write();
  if (treatment.resizes_storage) recording_.storages.note_resized(arguments.front().toTensor());
  OperatorResults noted(recording_, treatment, arguments, node);
  noted.note(results);
  if (treatment.is_mutable && treatment.differentiable && at::GradMode::is_enabled()) noted.note_history();
  arguments = std::move(results);
}

void OperatorRecorder::make_constant(const c10::OperatorHandle& op, Stack& arguments) {
  const FakeMode::Pause real;
  op.callBoxed(arguments);
  recording_.note_constant(arguments.front().toTensor());
}

c10::SymInt OperatorRecorder::read_symbolically(const at::Tensor& tensor) {
  recording_.graph.set_origin(call_stack());
  recording_.modes.sync();
  Node& value = recording_.node_of(tensor);
  if (!c10::isIntegralType(tensor.scalar_type(), false) || tensor.sym_numel() != 1) {
    throw NotCapturable("sym_item() was given a tensor that is not one integer",
                        "Give it a tensor of one element and an integer dtype.", recording_.graph.site());
  }
  return number_of("torch.ops.aten.item.default", value);
}

c10::SymInt OperatorRecorder::read_version(const Treatment& treatment, const at::Tensor& tensor) {
  recording_.modes.sync();
  return number_of(treatment.target, recording_.node_of(tensor));
}

c10::SymInt OperatorRecorder::number_of(const std::string& target, Node& value) {
  const c10::SymInt symbol = recording_.shapes->add_unbacked_number();
  Node& item = recording_.graph.call(target, {value});
  const std::string name = shapes::expr_of(symbol).symbol_name();
  recording_.symbols.bind_symbol(name, item);
  item.meta().unbacked_bindings.push_back(name);
  return symbol;
}

std::optional<bool> OperatorRecorder::answer_equal(const Stack& arguments, bool is_whole) {
  const at::Tensor& left = arguments[0].toTensor();
  const at::Tensor& right = arguments[1].toTensor();
  if (!left.defined() || !right.defined() || left.device() != right.device()) return std::nullopt;
  if (differ_in_size(left, right)) return false;
  if (fake_id(left) != fake_id(right)) return std::nullopt;
  if (c10::isIntegralType(left.scalar_type(), /*includeBool=*/true)) return true;
  if (!is_whole || recording_.hook) return std::nullopt;
  at::_assert_async(left.eq(left).all(), kHasNaN);
  return true;
}

}  // namespace rehearse::capture
