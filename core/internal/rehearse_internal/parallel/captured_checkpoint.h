// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/parallel/checkpoint.h>

namespace rehearse::parallel {

// As run_checkpoint(), for code of a graph. If operators are recorded below autograd, so are those of the second run:
// it becomes part of the recorded backward, which then needs only the inputs and the generators' states of the forward.
std::vector<at::Tensor> run_captured_checkpoint(CheckpointCode code, std::vector<at::Tensor> inputs, void* result);

}  // namespace rehearse::parallel
