// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// Makes `part` a part of `whole`, and its tensors tensors of `whole`. If it has parts itself, those become the parts.
// Its time limit is dropped: that of `whole` counts.
void add_part(Operation& whole, Operation part);

}  // namespace rehearse::comm
