// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>

#include <torch/csrc/autograd/function.h>

namespace rehearse::parallel {

class ShardedModel;

// From now on, calls the model right before and after the parameter's own `accumulator` adds to the gradient, even if
// the added gradient is undefined.
void add_gradient_hooks(std::weak_ptr<ShardedModel> model, std::size_t unit, std::size_t parameter,
                        torch::autograd::Node& accumulator);

}  // namespace rehearse::parallel
