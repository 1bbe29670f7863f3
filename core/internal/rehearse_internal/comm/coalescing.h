// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// Makes `part` a part of `whole`, and adds its tensors to those of `whole`. If `part` has parts itself, adds those
// parts instead. Drops the part's time limit, because only the limit of `whole` counts.
void add_part(Operation& whole, Operation part);

}  // namespace rehearse::comm
