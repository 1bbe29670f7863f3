// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace rehearse::capture {

class FakeMode;

// Routes operators with the Fake key to FakeMode::current(). The first call registers the fallback for the life of the
// process, and takes 4 to 5 ms, because LibTorch recomputes its dispatch tables. Later calls do nothing.
void register_fake_fallback();

void call_on_fakes(FakeMode& mode, const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack& stack);

}  // namespace rehearse::capture
