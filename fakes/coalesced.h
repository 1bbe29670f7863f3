// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "workspace.h"

namespace rehearse::fakes {

// Carries out the parts of a transfer in order. Gloo first flattens all inputs into its own memory. To match that,
// every part reads what its tensors held before the first part wrote anything. Thus, if a tensor occurs in two parts,
// it ends with the sum of the original values, not with a sum of sums.
void move_parts(const comm::Transfer& transfer, Workspace& workspace);

}  // namespace rehearse::fakes
