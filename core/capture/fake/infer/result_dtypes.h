// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "capture/fake/call/operator_call.h"

namespace rehearse::capture {

// What a kernel gives for tensors of one element with the dtypes of the call's: the dtype of each tensor among the
// results (those in lists too), by LibTorch's own type promotion. Remembered by operator and dtypes. For operators that
// take tensors of any size.
const std::vector<c10::ScalarType>& result_dtypes(const Call& call);

}  // namespace rehearse::capture
