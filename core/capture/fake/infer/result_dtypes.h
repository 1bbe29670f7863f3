// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "capture/fake/call/operator_call.h"

namespace rehearse::capture {

// The dtypes of an operator's result tensors, including those in lists, by LibTorch's own type promotion. Runs the
// kernel on tensors of one element with the call's dtypes, and caches the answer by the operator and by all arguments
// that may decide it (dtypes, types of numbers, strings). Use it only for operators that accept tensors of any size.
const std::vector<c10::ScalarType>& result_dtypes(const Call& call);

}  // namespace rehearse::capture
