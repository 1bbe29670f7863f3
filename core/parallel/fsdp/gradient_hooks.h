// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>

#include <torch/csrc/autograd/function.h>

namespace rehearse::parallel {

class ShardedModel;

// From now on the model hears of the gradients of a parameter: right before and after `accumulator`, the parameter's
// own, adds one up, and of those too that are undefined.
void add_gradient_hooks(std::weak_ptr<ShardedModel> model, std::size_t unit, std::size_t parameter,
                        torch::autograd::Node& accumulator);

}  // namespace rehearse::parallel
