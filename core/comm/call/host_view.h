// SPDX-License-Identifier: BSD-3-Clause
// A device of LibTorch's private type has the host's memory here (--cuda=device of Python ranks). Its tensors cannot be
// added to those of another one, so calls run on views of the CPU.
#pragma once

#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// True if a tensor of the call is on such a device.
bool is_on_private_device(const Operation& call);

// Puts views in the place of those tensors. Throws c10::NotImplementedError if one is sparse.
void run_on_host(Operation& call);

// Calls `note` with each call's device before it runs on views. `note` may throw. Set it once, before the first world.
void observe_private_devices(void (*note)(c10::Device device));

// The tensors themselves in the place of views.
std::vector<at::Tensor> of_caller(const TensorList& tensors);

}  // namespace rehearse::comm
