// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse_internal/capture/left_fakes.h>

namespace rehearse::compiler {

// Turns fakes that the code still holds after its capture into real tensors. Runs `left.segment` to compute tensors for
// them, unless that would have effects or an input of the segment is missing. If the segment does not run, these fakes
// stay fakes. `inputs`: the segment's inputs; None: missing. Returns whether the code held any fakes.
bool make_left_fakes_real(const capture::LeftFakes& left, const std::vector<c10::IValue>& inputs);

}  // namespace rehearse::compiler
