// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>

#include <torch/csrc/autograd/function.h>

namespace rehearse::parallel {

class ShardedModel;

// `accumulator`: the node that adds to the parameter's gradient. From now on, model->before_gradient() runs right
// before this node, and model->after_gradient() right after it, even if the added gradient is undefined.
void add_gradient_hooks(std::weak_ptr<ShardedModel> model, std::size_t unit, std::size_t parameter,
                        torch::autograd::Node& accumulator);

}  // namespace rehearse::parallel
