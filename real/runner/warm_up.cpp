// SPDX-License-Identifier: BSD-3-Clause
#include "warm_up.h"

#include <ATen/ATen.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DeviceGuard.h>

namespace rehearse::real {

namespace {

// While this object lives, backward passes run on the calling thread. Autograd may have no threads for devices: it
// makes them at the process's first backward pass, and only if the process has devices by then.
class WithoutThreads {
 public:
  WithoutThreads() { c10::AutogradState::get_tls_state().set_multithreading_enabled(false); }
  WithoutThreads(const WithoutThreads&) = delete;
  WithoutThreads& operator=(const WithoutThreads&) = delete;
  ~WithoutThreads() { c10::AutogradState::get_tls_state().set_multithreading_enabled(had_); }

 private:
  const bool had_ = c10::AutogradState::get_tls_state().get_multithreading_enabled();
};

}  // namespace

void warm_up_devices(int devices) {
  const WithoutThreads without_threads;
  for (int device = 0; device < devices; ++device) {
    const at::Device where(at::kCUDA, static_cast<at::DeviceIndex>(device));
    const c10::DeviceGuard guard(where);
    const auto weight = at::ones({2, 2}, at::TensorOptions(where)).set_requires_grad(true);
    at::mm(weight, weight).sum().backward();
    static_cast<void>(weight.grad().cpu());
  }
}

}  // namespace rehearse::real
