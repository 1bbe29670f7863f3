// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

namespace rehearse_test::differential {

// The code of LibTorch that calls a program: none, a gradient hook, the forward of a custom autograd function, or a
// loss. Inside each of these, a call must do the same as outside.
enum class Place { Plain, Hook, Function, Loss };

// Runs the code once, in the caller's grad mode.
void run_at(Place place, const std::function<void()>& code);

}  // namespace rehearse_test::differential
