// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/hooks/tensor_overrides.h"

#include <memory>
#include <utility>

#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/capture/errors.h>

#include "capture/trace/caller/call_stack.h"
#include "capture/trace/operators/treatment.h"
#include "capture/trace/tracer.h"

namespace rehearse::capture {
namespace {

class ArgumentMeta final : public torch::autograd::AutogradMeta {
 public:
  ArgumentMeta(c10::TensorImpl* self, bool requires_grad, std::string source)
      : AutogradMeta(self, requires_grad), self_(self), source_(std::move(source)) {}

  at::Tensor& mutable_grad() override {
    refuse();
    const at::Tensor real = real_one();
    return real.defined() ? real.mutable_grad() : AutogradMeta::mutable_grad();
  }
  const at::Tensor& grad() const override {
    refuse();
    const at::Tensor real = real_one();
    return real.defined() ? real.grad() : AutogradMeta::grad();
  }

 private:
  void refuse() const {
    const Tracer* const tracer = Tracer::current();
    if (tracer == nullptr || !tracer->is_in_user_code()) return;
    throw NotCapturable("the gradient of the argument " + source_ + " is looked at inside of a captured function",
                        "Give the gradient as an argument of its own.", call_stack());
  }

  at::Tensor real_one() const {
    const Tracer* const tracer = Tracer::current();
    if (tracer == nullptr || !tracer->rest()) return {};
    return tracer->rest()->real_tensor(
        at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::unsafe_reclaim_from_nonowning(self_)));
  }

  c10::TensorImpl* const self_;
  const std::string source_;
};

NotCapturable refusal_of_gradient(const CallerState& caller) {
  if (caller.has_called({"_ZN5torch2nn6Module9zero_gradE", "_ZN5torch5optim9Optimizer9zero_gradE"})) {
    return {"zero_grad() is called inside of a captured function", kCallOutside, call_stack()};
  }
  return {"the gradient of a tensor is looked at inside of a captured function",
          "It may be another one in the next call: give it as an argument.", call_stack()};
}

// Called when code reads the gradient of a real tensor. If captured code reads it, ends the capture or, if that is not
// possible, throws the refusal.
void refuse_gradient_of_real() {
  Tracer* const tracer = Tracer::current();
  if (tracer == nullptr || !tracer->is_in_user_code()) return;
  const NotCapturable refusal = refusal_of_gradient(tracer->caller());
  if (!tracer->go_on_eagerly(refusal)) throw refusal;
}

}  // namespace

void refuse_gradient_of(const at::Tensor& fake, std::string source) {
  c10::TensorImpl* const impl = fake.unsafeGetTensorImpl();
  impl->set_autograd_meta(std::make_unique<ArgumentMeta>(impl, fake.requires_grad(), std::move(source)));
}

namespace {

// True if a recorded operator that has not run yet, such as `buffer.add_(parameter)`, gives this real tensor a history.
bool has_begun_to_require_grad(const c10::TensorImpl& real) {
  if (!is_any_captured()) return false;
  Tracer* const tracer = Tracer::current();
  if (tracer == nullptr || !tracer->is_in_user_code()) return false;
  return tracer->recording().inputs.begins_to_require_grad(real);
}

}  // namespace

bool begins_a_history(const at::TensorBase& real) {
  const c10::TensorImpl& impl = *real.unsafeGetTensorImpl();
  const bool has_one = impl.autograd_meta() != nullptr && impl.autograd_meta()->requires_grad();
  return !has_one && impl.requires_grad();
}

}  // namespace rehearse::capture

// These definitions replace LibTorch's functions, because the executable's definition takes precedence over a
// library's. They differ from LibTorch's only for captured code (see tensor_overrides.h).
const at::Tensor& c10::TensorImpl::grad() const {
  if (!autograd_meta_) return impl::GetAutogradMetaFactory()->undefined_tensor();
  if (!key_set_.has(DispatchKey::Fake)) rehearse::capture::refuse_gradient_of_real();
  return autograd_meta_->grad();
}

at::Tensor& c10::TensorImpl::mutable_grad() {
  if (!autograd_meta_) autograd_meta_ = impl::GetAutogradMetaFactory()->make();
  if (!key_set_.has(DispatchKey::Fake)) rehearse::capture::refuse_gradient_of_real();
  return autograd_meta_->mutable_grad();
}

bool c10::TensorImpl::requires_grad() const {
  if (autograd_meta_ && autograd_meta_->requires_grad()) return true;
  return !key_set_.has(DispatchKey::Fake) && rehearse::capture::has_begun_to_require_grad(*this);
}
