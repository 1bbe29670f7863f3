// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/parallel/checkpoint.h>

namespace rehearse::parallel {

// Like run_checkpoint(), for code of a graph. If a recording below autograd is in progress, the operators of the second
// run are recorded, too, and become part of the recorded backward. That backward then needs only the inputs and the
// generators' states of the forward.
std::vector<at::Tensor> run_captured_checkpoint(CheckpointCode code, std::vector<at::Tensor> inputs, void* result);

}  // namespace rehearse::parallel
