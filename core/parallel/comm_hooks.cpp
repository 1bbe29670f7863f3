// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/parallel/comm_hooks.h>

#include <utility>
#include <vector>

#include <c10/core/GradMode.h>

#include <rehearse/parallel/power_sgd.h>

namespace rehearse::parallel {
namespace {

class FunctionHook : public c10d::CppCommHookInterface<CommHook> {
 public:
  using CppCommHookInterface::CppCommHookInterface;
  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    return state_(bucket);
  }
};

c10::intrusive_ptr<c10::ivalue::Future> completed(at::Tensor tensor) {
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
  future->markCompleted(std::move(tensor));
  return future;
}

}  // namespace

std::unique_ptr<c10d::CommHookInterface> comm_hook(CommHook hook) {
  TORCH_CHECK(hook, "comm_hook() was given an empty function");
  return std::make_unique<FunctionHook>(std::move(hook));
}

std::unique_ptr<c10d::CommHookInterface> bf16_compress_hook(c10::intrusive_ptr<c10d::ProcessGroup> group) {
  TORCH_CHECK(group, "bf16_compress_hook() was given an empty process group");
  return comm_hook([group = std::move(group)](c10d::GradBucket& bucket) {
    const at::Tensor buffer = bucket.getBuffer();
    std::vector<at::Tensor> compressed = {buffer.to(at::kBFloat16).div_(group->getSize())};
    const auto work = group->allreduce(compressed);
    return work->getFuture()->then(
        [buffer, sum = compressed[0]](c10::ivalue::Future& reduced) {
          reduced.value();  // throws what the all-reduce threw
          const at::NoGradGuard no_grad;
          return c10::IValue(buffer.copy_(sum));
        },
        c10::TensorType::get());
  });
}

std::unique_ptr<c10d::CommHookInterface> power_sgd_hook(std::shared_ptr<PowerSgd> power_sgd) {
  TORCH_CHECK(power_sgd, "power_sgd_hook() was given no PowerSgd");
  return comm_hook([power_sgd = std::move(power_sgd)](c10d::GradBucket& bucket) {
    return completed(power_sgd->reduce(bucket));
  });
}

}  // namespace rehearse::parallel
