// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "capture/fake/call.h"

namespace rehearse::capture {

// What the call gives, one Output a return. For a return that is an argument: monostate, or its geometry after the
// call where that may have changed. Counts itself in the mode's InferenceCounts.
Outputs infer(const Call& call);

// By running LibTorch's own Meta kernel: exact, for calls without symbols.
Outputs infer_on_meta(const Call& call);

// The same where the kernel computes with symbols, as those of views do: exact too. None where it wants plain numbers.
std::optional<Outputs> infer_on_symbolic_meta(const Call& call);

// An operator on each element: broadcast sizes, promoted dtype.
Outputs infer_pointwise(const Call& call);

// What a kernel gave for stand-ins of the arguments, as Outputs on `device`.
Outputs outputs_of(const OperatorFacts& facts, c10::ArrayRef<c10::IValue> results, c10::Device device);

}  // namespace rehearse::capture
