// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/compile/module_hooks.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include <rehearse/compile/watch.h>
#include <rehearse_internal/operators/capture_mode.h>

namespace rehearse::compiler {
namespace {

namespace autograd = torch::autograd;
using Tensors = ModuleHookLists::Tensors;

void require_length(const Tensors& list, std::size_t length, const char* hook) {
  if (list.size() == length) return;
  C10_THROW_ERROR(ValueError, fmt::format("ModuleHooks: a {} hook has left a list of {} tensors, and was given {}. "
                                          "Put other tensors in their places",
                                          hook, list.size(), length));
}

bool is_differentiable(const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); }

bool any_requires_grad(const Tensors& tensors) { return std::ranges::any_of(tensors, is_differentiable); }

using OnGradients = std::function<void(Tensors& gradients)>;

struct SavedHook final : torch::CustomClassHolder {
  explicit SavedHook(OnGradients given) : hook(std::move(given)) {}
  const OnGradients hook;
};

// Returns the tensors unchanged, and adds one autograd node through which all of their gradients pass together.
struct Gate : autograd::Function<Gate> {
  static Tensors forward(autograd::AutogradContext* context, OnGradients hook, at::TensorList tensors) {
    context->saved_data["hook"] = c10::IValue::make_capsule(c10::make_intrusive<SavedHook>(std::move(hook)));
    Tensors constant;
    for (const at::Tensor& tensor : tensors) {
      if (!tensor.requires_grad()) constant.push_back(tensor);
    }
    context->mark_non_differentiable(constant);
    return tensors.vec();
  }
  static Tensors backward(autograd::AutogradContext* context, Tensors gradients) {
    const auto hook = context->saved_data["hook"].toCapsule();
    dynamic_cast<const SavedHook&>(*hook).hook(gradients);
    gradients.insert(gradients.begin(), at::Tensor());  // for the argument `hook`
    return gradients;
  }
};

// autograd::Function accepts defined tensors only.
void pass_gate(Tensors& tensors, const OnGradients& hook) {
  Tensors defined;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) defined.push_back(tensor);
  }
  const std::size_t all = tensors.size();
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < all; ++i) {
    if (tensors[i].defined()) positions.push_back(i);
  }
  std::vector<bool> differentiable;
  for (const std::size_t position : positions) differentiable.push_back(tensors[position].requires_grad());
  const Tensors passed = Gate::apply(
      [hook, positions, differentiable, all](Tensors& gradients) {
        Tensors list(all);
        for (std::size_t i = 0; i < positions.size(); ++i) {
          if (differentiable[i]) list[positions[i]] = gradients[i];
        }
        hook(list);
        for (std::size_t i = 0; i < positions.size(); ++i) gradients[i] = list[positions[i]];
      },
      at::TensorList(defined));
  for (std::size_t i = 0; i < positions.size(); ++i) tensors[positions[i]] = passed[i];
}

std::optional<std::size_t> only_differentiable(const Tensors& tensors) {
  if (std::ranges::count_if(tensors, is_differentiable) != 1) return std::nullopt;
  return static_cast<std::size_t>(std::ranges::find_if(tensors, is_differentiable) - tensors.begin());
}

}  // namespace

// The state that the hooks of one call's backward share.
class HookedCall::Backward : public std::enable_shared_from_this<HookedCall::Backward> {
 public:
  explicit Backward(ModuleHookLists hooks) : hooks_(std::move(hooks)), mode_(operators::CaptureMode::current()) {
    if (mode_ != nullptr && mode_->has_ended()) mode_ = nullptr;
  }

  void take(Tensors& inputs) {
    inputs_ = inputs.size();
    has_gradients_ = any_requires_grad(inputs);
    if (!has_gradients_ || hooks_.backward.empty()) return;
    if (mode_ == nullptr) {
      return pass_gate(inputs, [self = shared_from_this()](Tensors& gradients) { self->of_inputs(gradients); });
    }
    input_ = captured(inputs, "inputs");
    captured_input_ = inputs[*input_];
  }

  void take_outputs(Tensors& outputs) {
    outputs_ = outputs.size();
    if (!any_requires_grad(outputs)) return;
    if (mode_ == nullptr) {
      return pass_gate(outputs, [self = shared_from_this()](Tensors& gradients) { self->of_outputs(gradients); });
    }
    const std::size_t output = captured(outputs, "outputs");
    operators::HookRecorder* const recorder = mode_->hooks();
    if (recorder == nullptr) mode_->refuse("a module with backward hooks", "Call it outside of the captured function.");
    recorder->add(
        outputs[output], [&](const at::Tensor& gradient) { return of_captured_output(output, gradient); },
        std::exchange(captured_input_, {}),
        [&](const at::Tensor& gradient, const at::Tensor& of_output) {
          return of_captured_input(gradient, output, of_output);
        });
    // In eager mode, hooks that the caller puts on the result run before the module's hooks. The view gives the same
    // order.
    outputs[output] = outputs[output].view_as(outputs[output]);
  }

 private:
  // Replaces the only tensor that requires grad by a view of it, and returns its position.
  std::size_t captured(Tensors& tensors, const char* what) const {
    const auto position = only_differentiable(tensors);
    if (!position) {
      mode_->refuse(fmt::format("a module with backward hooks and several {} that require grad", what),
                    "Call it outside of the captured function, or give it one such tensor.");
    }
    tensors[*position] = tensors[*position].view_as(tensors[*position]);
    return *position;
  }

  at::Tensor of_captured_output(std::size_t position, const at::Tensor& gradient) {
    Tensors gradients(outputs_);
    gradients[position] = gradient;
    of_outputs(gradients);
    grad_outputs_.reset();
    return captured_result(gradient, gradients[position]);
  }

  at::Tensor of_captured_input(const at::Tensor& gradient, std::size_t output, const at::Tensor& of_output) {
    Tensors gradients(inputs_);
    gradients[*input_] = gradient;
    grad_outputs_.emplace(outputs_);
    (*grad_outputs_)[output] = of_output;
    of_inputs(gradients);
    return captured_result(gradient, gradients[*input_]);
  }

  // If a captured hook returns nothing, the gradient stays. If a module's hook leaves an undefined gradient, eager mode
  // drops the gradient, which no graph can do.
  at::Tensor captured_result(const at::Tensor& given, const at::Tensor& left) const {
    if (given.defined() && !left.defined()) {
      mode_->refuse("a backward hook of a module that leaves a gradient undefined",
                    "Call the module outside of the captured function, or leave a tensor of zeros.");
    }
    return left;
  }

  void of_outputs(Tensors& gradients) {
    for (const auto& [number, hook] : hooks_.backward_pre) {
      hook(gradients);
      require_length(gradients, outputs_, "full backward pre");
    }
    if (has_gradients_) {
      grad_outputs_ = gradients;
      return;
    }
    Tensors none(inputs_);
    for (const auto& [number, hook] : hooks_.backward) {
      hook(none, gradients);
      if (none.size() == inputs_ && !std::ranges::any_of(none, [](const at::Tensor& each) { return each.defined(); })) {
        continue;
      }
      C10_THROW_ERROR(ValueError,
                      "ModuleHooks: a full backward hook has given gradients of inputs, none of which requires grad. "
                      "Leave them undefined");
    }
  }

  // Gradients may arrive at the inputs without having passed the outputs, as in a second differentiation. Then no full
  // backward hook runs.
  void of_inputs(Tensors& gradients) {
    if (!grad_outputs_) return;
    const Tensors grad_outputs = *std::exchange(grad_outputs_, std::nullopt);
    for (const auto& [number, hook] : hooks_.backward) {
      hook(gradients, grad_outputs);
      require_length(gradients, inputs_, "full backward");
    }
  }

  const ModuleHookLists hooks_;
  const operators::CaptureMode* mode_;
  std::size_t inputs_ = 0, outputs_ = 0;
  bool has_gradients_ = false;
  std::optional<std::size_t> input_;
  at::Tensor captured_input_;
  std::optional<Tensors> grad_outputs_;
};

HookedCall::HookedCall(const std::shared_ptr<ModuleHookLists>& hooks) : hooks_(*hooks) {
  if (is_watching()) {
    class Changes final : public Watched {
     public:
      explicit Changes(std::shared_ptr<const ModuleHookLists> lists)
          : lists_(std::move(lists)), before_(lists_->changes) {}
      bool holds() const override { return lists_->changes == before_; }
      GuardFailure failure() const override { return {"hooks of ModuleHooks", "as at the capture", "others", ""}; }

     private:
      std::shared_ptr<const ModuleHookLists> lists_;
      std::int64_t before_;
    };
    add_watched(hooks.get(), std::make_shared<Changes>(hooks));
  }
  const bool has_backward = !hooks_.backward.empty() || !hooks_.backward_pre.empty();
  if (has_backward && at::GradMode::is_enabled()) backward_ = std::make_shared<Backward>(hooks_);
}

HookedCall::~HookedCall() = default;

void HookedCall::before(Tensors& inputs) {
  const std::size_t length = inputs.size();
  for (const auto& [number, hook] : hooks_.forward_pre) {
    hook(inputs);
    require_length(inputs, length, "forward pre");
  }
  if (backward_) backward_->take(inputs);
  inputs_ = inputs;
}

void HookedCall::after(Tensors& outputs) {
  const std::size_t length = outputs.size();
  for (const auto& [number, hook] : hooks_.forward) {
    hook(outputs, inputs_);
    require_length(outputs, length, "forward");
  }
  if (backward_) backward_->take_outputs(outputs);
  inputs_.clear();
}

}  // namespace rehearse::compiler
