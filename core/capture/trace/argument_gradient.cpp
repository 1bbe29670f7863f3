// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/argument_gradient.h"

#include <memory>
#include <utility>

#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/capture/errors.h>

#include "capture/trace/caller/call_stack.h"
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

  // Where the rest of the function runs as it is; else undefined.
  at::Tensor real_one() const {
    const Tracer* const tracer = Tracer::current();
    if (tracer == nullptr || !tracer->rest()) return {};
    return tracer->rest()->real_tensor(
        at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::unsafe_reclaim_from_nonowning(self_)));
  }

  c10::TensorImpl* const self_;
  const std::string source_;
};

}  // namespace

void refuse_gradient_of(const at::Tensor& fake, std::string source) {
  c10::TensorImpl* const impl = fake.unsafeGetTensorImpl();
  impl->set_autograd_meta(std::make_unique<ArgumentMeta>(impl, fake.requires_grad(), std::move(source)));
}

}  // namespace rehearse::capture
