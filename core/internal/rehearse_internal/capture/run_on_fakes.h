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

// Returns new fakes with the same properties, which the caller may keep or change. Fakes that shared a storage get a
// new storage that they share. Values other than tensors stay.
std::vector<c10::IValue> copies_of_fakes(const std::vector<c10::IValue>& fakes);

// Runs a captured graph, without autograd, on copies of `fakes` (fake tensors and symbolic integers of `shapes`), and
// returns its results. Each node defines the unbacked symbols that its metadata names. Computes, draws, sends and
// changes nothing, but may add guards to `shapes`. Does not block. Throws the errors of operators for inputs whose
// layout they refuse, and those of fake_errors.h.
std::vector<c10::IValue> run_on_fakes(const std::shared_ptr<const graph::GraphModule>& module,
                                      const std::vector<c10::IValue>& fakes,
                                      const std::shared_ptr<shapes::ShapeEnv>& shapes);

}  // namespace rehearse::capture
