// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace rehearse::capture {

class FakeMode;

// Makes operators with the Fake key come to FakeMode::current(). The first call registers, for the life of the process
// (4 to 5 ms: LibTorch computes its dispatch tables anew); later ones do nothing.
void register_fake_fallback();

// What the fallback does while `mode` is on.
void call_on_fakes(FakeMode& mode, const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack& stack);

}  // namespace rehearse::capture
