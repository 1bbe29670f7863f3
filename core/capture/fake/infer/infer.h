// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <vector>

#include "capture/fake/call/operator_call.h"
#include "capture/fake/call/result_layout.h"

namespace rehearse::capture {

// Infers the results of a call, one Output for each return. If a return is an argument, its Output is the argument's
// geometry after the call, or monostate if the call has left the geometry unchanged. Counts the call in the mode's
// InferenceCounts if the operator has a rule or returns tensors.
Outputs infer(const Call& call);

// Infers the results of an operator that returns only arguments. If the operator is elementwise, checks that the other
// arguments fit.
Outputs infer_in_place(const Call& call);

// Runs LibTorch's own Meta kernel. Exact, for calls without symbols.
Outputs infer_on_meta(const Call& call);

// Like infer_on_meta(), but also for calls with symbols. Returns nothing if the kernel needs plain numbers or cannot
// run.
std::optional<Outputs> try_on_meta(const Call& call);

// Infers the results of elementwise operators: broadcast sizes, promoted dtype.
Outputs infer_pointwise(const Call& call);

// The layout that an elementwise operator gives its results. `operands`: the tensors that it reads.
Layout pointwise_layout(const Call& call, std::vector<at::Tensor> operands);

// The last resort: runs the kernel. If sizes are symbols and the operator may be sampled (sampled_operators.h), runs it
// at several small sizes and fits expressions to the sizes of its results. If no expression fits, or if the operator
// may not be sampled, adds guards that fix the call's sizes. Throws UnknownShape if it cannot add these guards, if an
// operator that may not be sampled has no Meta kernel, or if the kernel cannot run on made-up tensors.
Outputs infer_by_sampling(const Call& call);

// Converts the results of a kernel that ran on stand-ins of the arguments.
Outputs outputs_of(const OperatorFacts& facts, c10::ArrayRef<c10::IValue> results, c10::Device device);

}  // namespace rehearse::capture
