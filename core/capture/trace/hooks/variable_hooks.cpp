// SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <ATen/core/VariableHooksInterface.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <rehearse_internal/capture/compiled_history.h>
#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/libtorch/nodes.h>

#include "capture/fake/fake_impl.h"
#include "capture/trace/caller/call_stack.h"
#include "capture/trace/hooks/process_hooks.h"
#include "capture/trace/hooks/tensor_overrides.h"
#include "capture/trace/operators/treatment.h"
#include "capture/trace/tracer.h"

namespace rehearse::capture {
namespace {

using at::TensorBase;

// The tracer if captured code is asking. Null if an operator asks, or if the code runs eagerly.
Tracer* tracing() {
  Tracer* const tracer = Tracer::current();
  if (!tracer) return nullptr;
  if (!tracer->is_in_user_code()) return nullptr;
  const bool on = c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::DeferredInit) &&
                  !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::DeferredInit);
  return on ? tracer : nullptr;
}

// The tensor itself, or, if the rest of the function runs eagerly, the real tensor for which a fake stands.
at::Tensor asked_of(const TensorBase& self) {
  const at::Tensor tensor(self);
  const Tracer* const tracer = Tracer::current();
  return tracer && tracer->rest() && is_fake(tensor) ? tracer->rest()->real_tensor(tensor) : tensor;
}

// While it lives, LibTorch's autograd asks about tensors, not the code.
std::optional<InOperator> let_autograd_ask() {
  Tracer* const tracer = Tracer::current();
  return tracer ? std::optional<InOperator>(std::in_place, tracer->recording().mode) : std::nullopt;
}

// No graph can hold what the code does here. Lets the rest of the code run eagerly; if that is not possible, throws.
void refuse(Tracer& tracer, const NotCapturable& refusal) {
  if (!tracer.go_on_eagerly(refusal)) throw refusal;
}

// True for a tensor that is a leaf in each call. It keeps its gradient without retain_grad(). No guard checks whether
// an argument is a leaf.
bool is_always_leaf(const Tracer& tracer, const TensorBase& base) {
  const at::Tensor tensor(base);
  return is_fake(tensor) ? tracer.has_begun_leaf(tensor) : tensor.is_leaf();
}

class RefusingHooks final : public at::impl::VariableHooksInterface {
 public:
  explicit RefusingHooks(at::impl::VariableHooksInterface& autograd) : autograd_(autograd) {}

  unsigned _register_hook(const TensorBase& self, std::function<TensorBase(const TensorBase&)> hook) const override {
    Tracer* const tracer = tracing();
    if (tracer && self.requires_grad()) {
      auto added = tracer->hooks().add(at::Tensor(self), hook);
      if (const auto* position = std::get_if<unsigned>(&added)) return *position;
      if (tracer->hooks().is_used(at::Tensor(self))) throw std::get<NotCapturable>(added);
      refuse(*tracer, std::get<NotCapturable>(added));
    }
    const at::Tensor tensor = asked_of(self);
    const auto asking = let_autograd_ask();
    if (!is_result_of_graph(tensor)) return autograd_._register_hook(tensor, std::move(hook));
    refuse_lost_gradient(self, "a hook is registered on");
    return autograd_._register_hook(tensor, [hook = std::move(hook)](const TensorBase& gradient) {
      return gradient.defined() ? hook(gradient) : TensorBase();
    });
  }
  void retain_grad(const TensorBase& self) const override {
    Tracer* const tracer = tracing();
    if (tracer && self.requires_grad() && is_always_leaf(*tracer, self)) return;
    if (tracer && self.requires_grad()) {
      refuse(*tracer, {"retain_grad() is called on a tensor that is being captured",
                       "Return the tensor, and call retain_grad() outside of the captured function.", call_stack()});
    }
    const at::Tensor tensor = asked_of(self);
    const auto asking = let_autograd_ask();
    if (is_result_of_graph(tensor)) refuse_lost_gradient(self, "retain_grad() is called on");
    autograd_.retain_grad(tensor);
  }
  void _backward(const at::Tensor& self, at::TensorList inputs, const std::optional<at::Tensor>& gradient,
                 std::optional<bool> retain_graph, bool create_graph) const override {
    if (Tracer* const tracer = tracing()) refuse(*tracer, {kGradientsInside, kCallOutside, call_stack()});
    std::vector<at::Tensor> real_inputs;
    for (const at::Tensor& input : inputs) real_inputs.push_back(asked_of(input));
    const auto real_gradient = gradient ? std::optional(asked_of(*gradient)) : std::nullopt;
    autograd_._backward(asked_of(self), real_inputs, real_gradient, retain_graph, create_graph);
  }

  TensorBase tensor_data(const TensorBase& self) const override {
    refuse_data(self);
    return autograd_.tensor_data(asked_of(self));
  }
  TensorBase variable_data(const TensorBase& self) const override {
    refuse_data(self);
    return autograd_.variable_data(asked_of(self));
  }
  const libtorch::NodePtr& grad_fn(const TensorBase& self) const override {
    refuse_about_history(self, "grad_fn() is asked of");
    return autograd_.grad_fn(asked_of(self));
  }
  void remove_hook(const TensorBase& self, unsigned pos) const override {
    Tracer* const tracer = tracing();
    if (tracer && is_fake(at::Tensor(self))) {
      const auto refusal = tracer->hooks().remove(at::Tensor(self), pos);
      if (!refusal) return;
      refuse(*tracer, *refusal);
    }
    autograd_.remove_hook(asked_of(self), pos);
  }
  bool is_view(const TensorBase& self) const override {
    if (!comes_from_operator(self)) refuse_behind_cut(self, "is_view() is asked of");
    refuse_question(self, "is_view() is asked of");
    return autograd_.is_view(asked_of(self));
  }
  const TensorBase& base(const TensorBase& self) const override {
    refuse_behind_cut(self, "_base() is asked of");
    refuse_question(self, "_base() is asked of");
    return autograd_.base(asked_of(self));
  }
  const std::string& name(const TensorBase& self) const override {
    refuse_question(self, "name() is asked of");
    return autograd_.name(asked_of(self));
  }
  bool is_leaf(const TensorBase& self) const override {
    const Tracer* const tracer = tracing();
    if (tracer && tracer->has_begun_leaf(at::Tensor(self))) return true;
    const auto* const impl = Tracer::current() ? dynamic_cast<const FakeImpl*>(self.unsafeGetTensorImpl()) : nullptr;
    const bool has_step = impl && Tracer::current()->recording().values.has_step(impl->id(), at::Tensor(self));
    if (tracer && has_step) return false;
    if (!has_step) refuse_about_history(self, "is_leaf() is asked of");
    return autograd_.is_leaf(asked_of(self));
  }
  std::int64_t output_nr(const TensorBase& self) const override {
    refuse_about_history(self, "output_nr() is asked of");
    return autograd_.output_nr(asked_of(self));
  }
  void set_data(const TensorBase& self, const TensorBase& data) const override {
    if (tracing()) {
      throw NotCapturable("set_data() replaces what a tensor is", "Use copy_() under a NoGradGuard.", call_stack());
    }
    autograd_.set_data(asked_of(self), asked_of(data));
  }
  TensorBase data(const TensorBase& self) const override { return variable_data(self); }
  std::int64_t _version(const TensorBase& self) const override {
    if (Tracer* const tracer = tracing()) {
      refuse(*tracer, {"_version() counts changes that a captured function does not make",
                       "Ask outside of the captured function, or call rehearse::version().", call_stack()});
    }
    return autograd_._version(asked_of(self));
  }
  bool retains_grad(const TensorBase& self) const override {
    if (self.requires_grad()) refuse_question(self, "retains_grad() is asked of");
    return autograd_.retains_grad(asked_of(self));
  }
  void requires_grad_(const TensorBase& self, bool value) const override {
    Tracer* const tracer = tracing();
    if (tracer && value && !self.requires_grad() && tracer->has_made(at::Tensor(self))) {
      autograd_.requires_grad_(self, value);
      return tracer->begin_leaf(at::Tensor(self));
    }
    if (tracer && self.requires_grad() != value) {
      refuse(*tracer, {"requires_grad_() changes a tensor inside of a captured function",
                       "Call it outside of the captured function. A tensor that the function has computed may begin to "
                       "require grad, and use detach() for one that is to require none.",
                       call_stack()});
    }
    const at::Tensor real = asked_of(self);
    const auto asking = let_autograd_ask();
    autograd_.requires_grad_(real, value);
    if (!real.is_same(at::Tensor(self))) autograd_.requires_grad_(self, value);
  }
  void basic_autograd_not_implemented_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                                               torch::jit::Stack* stack) const override {
    autograd_.basic_autograd_not_implemented_fallback(op, keys, stack);
  }
  std::optional<c10::ScalarType> grad_dtype(const TensorBase& self) const override {
    if (self.requires_grad()) refuse_question(self, "grad_dtype() is asked of");
    return autograd_.grad_dtype(asked_of(self));
  }
  void set_grad_dtype(const TensorBase& self, const std::optional<c10::ScalarType>& dtype) const override {
    if (tracing()) {
      throw NotCapturable("set_grad_dtype() is called inside of a captured function", kCallOutside, call_stack());
    }
    autograd_.set_grad_dtype(asked_of(self), dtype);
  }

 private:
  // The graph's value of a tensor without a gradient is the tensor itself, not the new tensor that data() gives. If the
  // tensor requires grad, the graph has a detach() instead (Values).
  static void refuse_data(const TensorBase& self) {
    Tracer* const tracer = tracing();
    if (!tracer || self.requires_grad() || !is_fake(at::Tensor(self))) return;
    refuse(*tracer, {"data() is called on a tensor that requires no gradient, inside of a captured function",
                     "Use detach() in place of data().", call_stack()});
  }

  // A fake has neither the history nor the base of the tensor for which it stands, so it cannot answer.
  static void refuse_question(const TensorBase& self, const char* question) {
    Tracer* const tracer = tracing();
    if (!tracer || !(is_fake(at::Tensor(self)) || begins_a_history(self))) return;
    if (is_asked_for_function(*tracer)) return;
    if (tracer->caller().is_in_gradients()) throw NotCapturable(kGradientsInside, kCallOutside, call_stack());
    refuse(*tracer, refusal_of(question));
  }

  // A tensor that requires no grad has no history. Its answers are those of each such tensor.
  static void refuse_about_history(const TensorBase& self, const char* question) {
    if (!self.requires_grad()) return;
    refuse_behind_cut(self, question);
    refuse_question(self, question);
  }

  // True if LibTorch's code for custom Functions asks: about the arguments, or about the results. The tracer refuses
  // these results if they have a history (Values::check_history()).
  static bool is_asked_for_function(const Tracer& tracer) {
    return tracer.caller().has_called(
        {"_ZN5torch8autograd4impl13gradient_edgeE", "_ZN5torch8autograd13_wrap_outputsE"});
  }

  // True if an operator of the present segment makes the tensor. If the segment is refused, it runs operator by
  // operator, so the real tensor answers as in eager mode.
  static bool comes_from_operator(const TensorBase& self) {
    Tracer* const tracer = Tracer::current();
    if (!tracer || (tracer->rest() && tracer->segments().ended_by().empty())) return false;
    const graph::Node* const maker = tracer->recording().values.maker_of(at::Tensor(self));
    return maker && tracer->recording().segments.has(*maker);
  }

  // Code behind a cut (a read or an eager region) holds results of compiled graphs. A result may be a plain tensor
  // although eager mode gives a view, so even the real tensor could answer wrongly. Therefore the capture fails.
  static void refuse_behind_cut(const TensorBase& self, const char* question) {
    Tracer* const tracer = Tracer::current();
    if (!tracer || !tracer->segments().recorder().has_values() || tracer->is_in_operator()) return;
    const auto* const impl = dynamic_cast<const FakeImpl*>(self.unsafeGetTensorImpl());
    if (!impl || tracer->recording().inputs.find(impl->id())) return;
    if (is_asked_for_function(*tracer) || tracer->caller().is_in_gradients()) return;
    // An autograd node, such as a checkpoint's, saves the real tensor.
    if (tracer->rest() && tracer->caller().has_called({"_ZN5torch8autograd13SavedVariable"})) return;
    tracer->end_with(refusal_of(question));
  }

  // Between two results of a graph, gradients flow inside of the graph, where no hook sees them.
  static void refuse_lost_gradient(const TensorBase& self, const char* what) {
    Tracer* const tracer = Tracer::current();
    if (!tracer || !tracer->rest()) return;
    const auto* const impl = dynamic_cast<const FakeImpl*>(self.unsafeGetTensorImpl());
    if (!impl || !tracer->recording().values.have_used(impl->id())) return;
    tracer->end_with({std::string(what) +
                          " a tensor behind a read or an eager region of a captured function, in front of which other "
                          "tensors were computed from it",
                      "Do it in front of that.", call_stack()});
  }

  static NotCapturable refusal_of(const char* question) {
    return {std::string(question) + " a tensor that is being captured", "Ask outside of the captured function.",
            call_stack()};
  }

  // True if the tensor's history is the single autograd node that all results of a compiled graph share.
  bool is_result_of_graph(const at::Tensor& tensor) const {
    return dynamic_cast<const CompiledHistory*>(autograd_.grad_fn(tensor).get()) != nullptr;
  }

  at::impl::VariableHooksInterface& autograd_;
};

}  // namespace

void watch_variable_hooks() {
  // Never destroyed, like LibTorch's own hooks.
  static auto* const hooks = [] {
    auto* const made = new RefusingHooks(*at::impl::GetVariableHooks());
    at::impl::SetVariableHooks(made);
    return made;
  }();
  static_cast<void>(hooks);
}

}  // namespace rehearse::capture
