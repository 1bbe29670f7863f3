// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/parallel/checkpoint.h>

namespace rehearse::parallel {

// Like run_checkpoint(), for code of a graph. In the backward, the code runs a second time. If a recording below
// autograd is in progress, it also records the second run. The recorded backward then needs only the inputs and the
// generators' states of the forward.
std::vector<at::Tensor> run_captured_checkpoint(CheckpointCode code, const std::vector<at::Tensor>& inputs,
                                                void* result);

}  // namespace rehearse::parallel
