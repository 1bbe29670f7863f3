// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/reducer.hpp>

namespace rehearse::parallel {

// The parameters for which the reducer has no gradient in an unfinished iteration, by its buckets: "no gradient came
// for parameters: b.weight, b.bias of DDP bucket 1 of 2". Empty if no iteration is unfinished, or if no gradient is
// missing. `names`: the names of the reducer's parameters, in the reducer's order.
std::string missing_gradients(const c10d::Reducer& reducer, const std::vector<std::string>& names);

// True if the reducer is ready for a backward, and no gradient of that backward has arrived yet.
bool waits_for_backward(const c10d::Reducer& reducer);

}  // namespace rehearse::parallel
