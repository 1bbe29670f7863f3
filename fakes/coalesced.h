// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "workspace.h"

namespace rehearse::fakes {

// Carries out the parts of a transfer in order. As in Gloo, which flattens all inputs into memory of its own first,
// every part reads what its tensors held before the first part wrote anything: a tensor that is there twice is
// reduced once.
void move_parts(const comm::Transfer& transfer, Workspace& workspace);

}  // namespace rehearse::fakes
