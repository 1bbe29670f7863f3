// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::capture {

// From now on, TorchScript code that captured code calls (a script module, its methods, a script function) runs as an
// eager region. The JIT reads the module's mode and attributes anew in each call, and changes its own plan in the first
// calls, so no graph could hold the operators of one run. The source file defines the functions of LibTorch through
// which all of these calls pass (docs/decisions/0028).
void watch_script_calls();

}  // namespace rehearse::capture
