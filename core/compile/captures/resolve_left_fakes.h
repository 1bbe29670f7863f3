// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse_internal/capture/left_fakes.h>

namespace rehearse::compiler {

// Turns fakes that the code still holds after its capture into real tensors. A fake that the segment computes stays a
// fake if running the segment would have effects. `inputs`: the segment's inputs. Returns whether the code held any
// fakes.
bool make_left_fakes_real(const capture::LeftFakes& left, const std::vector<c10::IValue>& inputs);

}  // namespace rehearse::compiler
