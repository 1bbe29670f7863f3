// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>

namespace rehearse::shapes {
class ShapeEnv;
}

namespace rehearse::capture {

// Fakes of the same form, for whoever keeps or changes them. Those that shared a storage share a new one; what is no
// tensor stays.
std::vector<c10::IValue> copies_of_fakes(const std::vector<c10::IValue>& fakes);

// What a captured graph returns for these inputs, by running it on copies of them without autograd: fake tensors and
// symbolic integers of `shapes`. Its nodes bring the unbacked symbols into being that they have in its metadata.
// Nothing is computed, drawn, sent or changed; `shapes` may get guards. Does not block. Throws what operators throw for
// inputs that lie in memory otherwise than they take them, and the errors of fake_errors.h.
std::vector<c10::IValue> run_on_fakes(const std::shared_ptr<const graph::GraphModule>& module,
                                      const std::vector<c10::IValue>& fakes,
                                      const std::shared_ptr<shapes::ShapeEnv>& shapes);

}  // namespace rehearse::capture
