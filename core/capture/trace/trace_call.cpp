// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include <ATen/autocast_mode.h>
#include <ATen/core/List.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/shapes/errors.h>
#include <rehearse_internal/shapes/shape_env.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "capture/fake/call/tensors_in.h"
#include "capture/trace/caller/call_stack.h"
#include "capture/trace/operators/kernel_errors.h"
#include "capture/trace/operators/passing_memory.h"
#include "capture/trace/operators/requires_grad.h"
#include "capture/trace/tracer.h"

namespace rehearse::capture {

using graph::Node;
using torch::jit::Stack;

namespace {

// Autocast keeps casts of weights for the rest of a region, in one map for all: fakes must not come there.
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

// Autograd must not see the fakes: neither history nor versions.
constexpr c10::DispatchKeySet kAboveFakes =
    c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::DispatchKeySet(c10::DispatchKey::DeferredInit);

graph::ValueMeta meta_of_result(const c10::IValue& result) {
  if (result.isTensor()) {
    return result.toTensor().defined() ? graph::ValueMeta(meta_of(result.toTensor())) : graph::ValueMeta();
  }
  if (!result.isList()) return {};
  graph::ValueMeta::List items;
  for (const c10::IValue& item : result.toListRef()) items.push_back(meta_of_result(item));
  return items;
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

graph::ValueMeta meta_of_results(const Stack& results) {
  if (results.size() == 1) return meta_of_result(results.front());
  graph::ValueMeta::List items;
  for (const c10::IValue& result : results) items.push_back(meta_of_result(result));
  return items;
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

}  // namespace

void Tracer::call(const c10::OperatorHandle& op, Stack& stack) {
  mode_.refuse_other_threads();
  const Treatment& treatment = treatments_.of(op);
  const auto first = stack.end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  Stack arguments(std::make_move_iterator(first), std::make_move_iterator(stack.end()));
  stack.erase(first, stack.end());
  if (rest_) {
    call_in_rest(op, arguments);
    for (c10::IValue& result : arguments) stack.push_back(std::move(result));
    return;
  }
  const Stack given = arguments;
  try {
    const InOperator inside(*this);
    call_in_operator(op, treatment, arguments);
  } catch (const std::exception& error) {
    if (!go_on_after(error)) throw;
    arguments = given;
    call_in_rest(op, arguments);
  }
  for (c10::IValue& result : arguments) stack.push_back(std::move(result));
}

void Tracer::call_in_rest(const c10::OperatorHandle& op, Stack& arguments) {
  const InOperator inside(*this);
  rest_->call(op, arguments);
}

// Whether the capture has ended in front of the operator that is refused.
bool Tracer::go_on_after(const std::exception& refusal) {
  const InOperator inside(*this);
  const bool is_refusal = dynamic_cast<const FakeError*>(&refusal) != nullptr ||
                          dynamic_cast<const shapes::ShapeError*>(&refusal) != nullptr;
  if (!is_refusal) return false;
  if (go_on_eagerly(refusal)) return true;
  note_if_refusal();
  return false;
}

void Tracer::call_in_operator(const c10::OperatorHandle& op, const Treatment& treatment, Stack& arguments) {
  if (treatment.kind == Treatment::Kind::Evaluate) {
    for (c10::IValue& argument : arguments) argument = with_fakes(argument);
    return infer(op, arguments);
  }
  add_asserts();
  graph_.set_origin(call_stack());
  check_modes();
  note_owner(arguments);
  if (treatment.communicates) note_communication();
  for (c10::IValue& argument : arguments) argument = with_fakes(argument);
  if (treatment.kind == Treatment::Kind::FirstGradient) refuse_first_gradient();
  switch (treatment.kind) {
    case Treatment::Kind::Read:
      arguments = {read(op, treatment, arguments)};
      break;
    case Treatment::Kind::Refuse:
      throw NotCapturable(treatment.reason, treatment.cure, graph_.site());
    case Treatment::Kind::Equal:
      if (const auto known = answer_equal(arguments)) {
        arguments = {*known};
      } else {
        arguments = {read(op, treatment, arguments)};
      }
      break;
    case Treatment::Kind::Communicate:
      communicate(op, treatment, arguments);
      break;
    default:
      record(op, treatment, arguments);
  }
}

// torch::autograd::grad() and backward() begin with ones_like() of the result.
void Tracer::refuse_first_gradient() const {
  if (is_called_by_gradients()) throw NotCapturable(kGradientsInside, kCallOutside, graph_.site());
}

// What the operator gives is left in `stack`.
void Tracer::infer(const c10::OperatorHandle& op, Stack& stack) {
  const c10::impl::ExcludeDispatchKeyGuard below(kAboveFakes);
  const WithoutCastCache no_cache;
  call_kernels(op, stack);
}

// With autograd, so that what runs within meets it as in eager mode; on fakes of its own, and what it gives is taken
// without its history.
void Tracer::infer_opaque(const c10::OperatorHandle& op, Stack& stack) {
  const c10::impl::ExcludeDispatchKeyGuard untraced(c10::DispatchKey::DeferredInit);
  const auto apart = [](const c10::IValue& tensors) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : tensors.toTensorVector()) list.push_back(make_fake(spec_of(tensor), tensor));
    return list;
  };
  stack.back() = apart(stack.back());
  op.callBoxed(stack);
  stack.back() = apart(stack.back());
}

// Against its schema: dropout() without training gives its argument, meshgrid() gives views. The operators that it is
// made of tell the truth.
bool Tracer::record_parts(const c10::OperatorHandle& op, Stack& arguments) {
  if (!op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) return false;
  op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, arguments);
  for (c10::IValue& result : arguments) {
    if (!result.isTensor() || !is_fake(result.toTensor())) continue;
    if (const at::Tensor real = inputs_.real_of(result.toTensor()); real.defined()) result = real;
  }
  return true;
}

void Tracer::record(const c10::OperatorHandle& op, const Treatment& treatment, Stack& arguments) {
  if (is_constant_maker(treatment)) {
    const FakeMode::Pause real;
    op.callBoxed(arguments);
    made_real_.push_back(arguments.front().toTensor());
    return;
  }
  modes_.sync();
  CallArguments given = to_arguments(op.schema(), arguments, context_);
  Stack results = arguments;
  if (treatment.kind == Treatment::Kind::Opaque) {
    infer_opaque(op, results);
  } else {
    infer(op, results);
    set_requires_grad(treatment, arguments, results);
  }
  if (!treatment.tells_aliases && share_memory(results, arguments) && record_parts(op, arguments)) return;
  Node& node = graph_.call(treatment.target, std::move(given.args), std::move(given.kwargs));
  if (treatment.is_mutable) segments_.note_write();
  if (!results.empty()) node.meta().set_value(meta_of_results(results));
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::vector<std::int64_t> path;
    if (results.size() > 1) path.push_back(static_cast<std::int64_t>(i));
    results[i] = note_result(results[i], node, std::move(path), arguments, treatment);
  }
  if (treatment.is_mutable && treatment.differentiable && at::GradMode::is_enabled()) {
    note_history(arguments, treatment, node);
  }
  arguments = std::move(results);
}

c10::SymInt Tracer::read_symbolically(const at::Tensor& tensor) {
  graph_.set_origin(call_stack());
  modes_.sync();
  Node& value = node_of(fake_of(tensor));
  if (!c10::isIntegralType(tensor.scalar_type(), false) || tensor.sym_numel() != 1) {
    throw NotCapturable("sym_item() was given a tensor that is not one integer",
                        "Give it a tensor of one element and an integer dtype.", graph_.site());
  }
  const c10::SymInt symbol = shapes_->add_unbacked_number();
  Node& item = graph_.call("torch.ops.aten.item.default", {value});
  const std::string name = shapes::expr_of(symbol).symbol_name();
  symbols_.bind_symbol(name, item);
  item.meta().unbacked_bindings.push_back(name);
  return symbol;
}

at::Tensor Tracer::fake_of(const at::Tensor& tensor) {
  if (!tensor.defined() || is_fake(tensor)) return tensor;
  const bool is_new = !inputs_.has(tensor);
  if (is_new && !inputs_.name_of(tensor) && has_passing_memory(tensor)) {
    throw NotCapturable("a tensor of memory that it does not own (from_blob()) is used in a captured function",
                        "The memory may be gone when the graph runs: use at::tensor(), a static array, or from_blob() "
                        "with a deleter.",
                        graph_.site());
  }
  at::Tensor fake = inputs_.source_of(mode_, tensor).fake;
  const auto is_it = [&](const at::Tensor& made) { return made.is_same(tensor); };
  if (is_new && std::any_of(made_real_.begin(), made_real_.end(), is_it)) {
    // Made in the captured function: each call has its own, which may be changed in place.
    inputs_.find(fake_id(fake))->input.is_made_inside = true;
    Node& copy = graph_.call("torch.ops.aten.clone.default", {values_.node_of(fake)});
    copy.meta().set_value(meta_of(fake));
    values_.add(fake, copy, {});
  }
  return fake;
}

// The module of the first parameter or buffer among the arguments.
void Tracer::note_owner(const Stack& arguments) {
  const std::string* name = nullptr;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      if (name == nullptr && !is_fake(tensor)) name = inputs_.name_of(tensor);
    });
  }
  if (name) graph_.set_owner(owner_of(*name));
}

c10::IValue Tracer::with_fakes(const c10::IValue& value) {
  if (value.isTensor()) return fake_of(value.toTensor());
  if (!value.isList()) return value;
  bool has_real = false;
  for_each_tensor(value, [&](const at::Tensor& tensor) { has_real = has_real || !is_fake(tensor); });
  if (!has_real) return value;
  const auto list = value.toList();
  c10::impl::GenericList fakes(list.elementType());
  for (const c10::IValue& item : value.toListRef()) fakes.push_back(with_fakes(item));
  return fakes;
}

Node& Tracer::node_of(const at::Tensor& tensor) { return values_.node_of(fake_of(tensor)); }

std::optional<bool> Tracer::answer_equal(const Stack& arguments) {
  const at::Tensor& left = arguments[0].toTensor();
  const at::Tensor& right = arguments[1].toTensor();
  if (fake_id(left) == fake_id(right)) return true;
  if (differ_in_size(left, right)) return false;
  if (is_called_by(graph_.site(), "multi_head_attention_forward")) {
    remarks_.push_back(
        {"attention took two inputs for different that are different tensors, without comparing data", graph_.site()});
    return false;
  }
  return std::nullopt;
}

// at::tensor({1, 2, 3}) writes into the memory of an empty tensor.
bool Tracer::is_constant_maker(const Treatment& treatment) const {
  return treatment.kind == Treatment::Kind::Empty && is_called_by_exported("_ZN2at6tensorE");
}

}  // namespace rehearse::capture
