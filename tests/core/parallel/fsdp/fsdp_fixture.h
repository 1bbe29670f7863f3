// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/nn/modules/linear.h>

#include <rehearse/parallel/fsdp.h>

#include "core/parallel/ddp_fixture.h"

namespace rehearse_test {

// Of an Mlp: "first", "second" and "third".
inline const rehearse::UnitPolicy kEachLinear = rehearse::UnitPolicy::of_type<torch::nn::LinearImpl>();

}  // namespace rehearse_test
