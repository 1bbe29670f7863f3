// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/reducer.hpp>

namespace rehearse::parallel {

// For which parameters of an iteration that has begun, and is not reduced, the reducer has no gradient, by its buckets:
// "no gradient came for parameters: b.weight, b.bias of DDP bucket 1 of 2". Empty: it is not in the middle of one, or
// has all. `names`: of its parameters, in their order.
std::string missing_gradients(const c10d::Reducer& reducer, const std::vector<std::string>& names);

// Has it been made ready for a backward of which nothing has come?
bool waits_for_backward(const c10d::Reducer& reducer);

}  // namespace rehearse::parallel
