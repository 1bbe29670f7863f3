// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/parallel/comm_hooks.h>

#include <utility>
#include <vector>

#include <rehearse/parallel/power_sgd.h>

#include "parallel/hooks/completed_future.h"

namespace rehearse::parallel {
namespace {

class FunctionHook : public c10d::CppCommHookInterface<CommHook> {
 public:
  using CppCommHookInterface::CppCommHookInterface;
  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override { return state_(bucket); }
};

// Casts a bucket to `dtype` before `hook` gets it. The reducer copies the future's tensor into the gradients, and so
// casts the result back.
class CastingHook : public c10d::CommHookInterface {
 public:
  CastingHook(std::unique_ptr<c10d::CommHookInterface> hook, at::ScalarType dtype)
      : hook_(std::move(hook)), dtype_(dtype) {
    TORCH_CHECK(hook_, "a compressing wrapper was given an empty hook");
  }
  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    at::Tensor cast = bucket.getBuffer().to(dtype_);
    bucket.setBuffer(cast);
    return hook_->runHook(bucket);
  }
  at::Tensor parseHookResult(const c10::IValue& result) override { return hook_->parseHookResult(result); }

 private:
  std::unique_ptr<c10d::CommHookInterface> hook_;
  at::ScalarType dtype_;
};

}  // namespace

std::unique_ptr<c10d::CommHookInterface> comm_hook(CommHook hook) {
  TORCH_CHECK(hook, "comm_hook() was given an empty function");
  return std::make_unique<FunctionHook>(std::move(hook));
}

std::unique_ptr<c10d::CommHookInterface> allreduce_hook(c10::intrusive_ptr<c10d::ProcessGroup> group) {
  TORCH_CHECK(group, "allreduce_hook() was given an empty process group");
  return comm_hook([group = std::move(group)](c10d::GradBucket& bucket) {
    std::vector<at::Tensor> gradients = {bucket.getBuffer()};
    gradients[0].div_(group->getSize());  // before the sum, which could overflow short floats
    return group->allreduce(gradients)->getFuture();
  });
}

std::unique_ptr<c10d::CommHookInterface> bf16_compress_hook(c10::intrusive_ptr<c10d::ProcessGroup> group) {
  return bf16_compress_wrapper(allreduce_hook(std::move(group)));
}

std::unique_ptr<c10d::CommHookInterface> fp16_compress_wrapper(std::unique_ptr<c10d::CommHookInterface> hook) {
  return std::make_unique<CastingHook>(std::move(hook), at::kHalf);
}

std::unique_ptr<c10d::CommHookInterface> bf16_compress_wrapper(std::unique_ptr<c10d::CommHookInterface> hook) {
  return std::make_unique<CastingHook>(std::move(hook), at::kBFloat16);
}

std::unique_ptr<c10d::CommHookInterface> power_sgd_hook(std::shared_ptr<PowerSgd> power_sgd) {
  TORCH_CHECK(power_sgd, "power_sgd_hook() was given no PowerSgd");
  return comm_hook([power_sgd = std::move(power_sgd)](c10d::GradBucket& bucket) {
    return completed_future(power_sgd->reduce(bucket));
  });
}

}  // namespace rehearse::parallel
