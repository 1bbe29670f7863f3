// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "capture/fake/call/operator_call.h"

namespace rehearse::capture {

// What the call gives, one Output a return. For a return that is an argument: monostate, or its geometry after the
// call where that may have changed. Counts itself in the mode's InferenceCounts.
Outputs infer(const Call& call);

// Of an operator that gives back its arguments: checks that the others fit.
Outputs infer_in_place(const Call& call);

// By running LibTorch's own Meta kernel: exact, for calls without symbols.
Outputs infer_on_meta(const Call& call);

// The same, for calls with symbols too. None where the kernel wants plain numbers, or cannot run.
std::optional<Outputs> try_on_meta(const Call& call);

// An operator on each element: broadcast sizes, promoted dtype.
Outputs infer_pointwise(const Call& call);

// By running real kernels at small sizes and fitting expressions to what they give.
Outputs infer_by_sampling(const Call& call);

// What a kernel gave for stand-ins of the arguments, as Outputs on `device`.
Outputs outputs_of(const OperatorFacts& facts, c10::ArrayRef<c10::IValue> results, c10::Device device);

}  // namespace rehearse::capture
