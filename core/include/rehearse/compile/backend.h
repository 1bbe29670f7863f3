// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>

namespace rehearse::shapes {
class ShapeEnv;
}

// What turns a captured graph into something that runs: the counterpart of torch.compile's `backend`.
namespace rehearse::compiler {

// One graph to compile: the whole forward, or one partition of it.
struct BackendInput {
  std::shared_ptr<graph::GraphModule> module;
  // One for each placeholder, in order: fake tensors and symbolic integers. They are the back end's to read, not to
  // keep: they belong to the capture that made them.
  std::vector<c10::IValue> example_inputs;
  std::shared_ptr<shapes::ShapeEnv> shapes;  // of the symbols among them; null when the graph has none
  std::string name;                          // "forward", or "submod_1" of a split one
  // For a back end that runs the graph under eager autograd after all: why, for explain(). Empty where nobody asks; may
  // be called during compile() only.
  std::function<void(const std::string& why)> note_eager = {};
};

// Runs the graph: one input for each placeholder, in order; one output for each item of the graph's list of outputs.
// May be called by several fibers, also while a call of it is suspended. Errors of operators leave as they are.
using CompiledGraph = std::function<std::vector<c10::IValue>(std::vector<c10::IValue> inputs)>;

// A back end. One object serves one compiled function of one rank, all of its graphs and recompilations.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  // Runs in the fiber of the rank that compiles, outside of any capture. What it throws ends the call that compiled;
  // nothing is put into the cache.
  virtual CompiledGraph compile(const BackendInput& input) = 0;
};

using BackendFactory = std::function<std::shared_ptr<Backend>()>;

// Makes `name` a value of CompileOptions::backend for the whole process. Throws std::invalid_argument when the name is
// empty or taken, or the factory is empty.
void register_backend(std::string name, BackendFactory factory);

// A new back end of that name. Always there: "eager" (runs the graph node by node), "counting" (the same, and
// counts; see counting_backend.h) and "aot_eager" (a forward and a backward graph; see aot_eager.h). Throws
// std::invalid_argument, with the names that there are, for any other.
std::shared_ptr<Backend> make_backend(std::string_view name);

// The names that make_backend() knows, sorted.
std::vector<std::string> backend_names();

}  // namespace rehearse::compiler
