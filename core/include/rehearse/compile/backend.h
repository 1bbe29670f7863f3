// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
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
  // By output: whether it must lie in memory as the graph has it, because it shares that memory with something that is
  // still to be used (an argument, or another output), or begins where only the data tell. Other outputs may lie as the
  // back end likes, if it says so in CompiledGraph::outputs. Empty: no output must.
  std::vector<bool> fixed_layouts = {};
};

// What a back end makes of a graph, and what it states of it.
struct CompiledGraph {
  // Runs the graph: one input for each placeholder, in order; one output for each item of the graph's list of outputs.
  // A function that takes `inputs` by value, or moves from them, owns them: what it lets go of early is freed early.
  // One that takes a const reference spares the count of references to each. May be called by several fibers, also
  // while a call of it is suspended. Errors of operators leave as they are.
  using Run = std::function<std::vector<c10::IValue>(std::vector<c10::IValue>&& inputs)>;

  CompiledGraph() = default;
  // A function alone states nothing.
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, CompiledGraph> && std::convertible_to<F, Run>)
  CompiledGraph(F&& function, std::optional<std::vector<graph::ValueMeta>> stated = std::nullopt)
      : run(std::forward<F>(function)), outputs(std::move(stated)) {}

  explicit operator bool() const noexcept { return static_cast<bool>(run); }
  std::vector<c10::IValue> operator()(std::vector<c10::IValue> inputs) const { return run(std::move(inputs)); }

  Run run;
  // Of each output of `run` its sizes, strides, storage offset and dtype; all else in it counts for nothing. What is no
  // tensor has an empty ValueMeta. Strides and offset are the back end's choice but for BackendInput::fixed_layouts;
  // sizes and dtype must be those of outputs_of(). The piece that takes an output is compiled for what is stated here.
  // What leaves the compiled function, and what a piece takes as the graph has it (a view() of it, an operator of your
  // own), is copied into the layout that the graph has.
  //
  // Not given: nothing is known. Then each call compares what it gets with outputs_of(), and copies what lies
  // otherwise. A statement is believed where the output leaves the function, and compared where it goes into the next
  // piece; CompileOptions::check_backend compares it everywhere.
  std::optional<std::vector<graph::ValueMeta>> outputs = std::nullopt;

  // For CompileOptions::cache_dir: what Backend::restore() makes this graph of again, in another process. Called at
  // most once, right after compile(). What it throws is why the graph is not written. Not given: it never is.
  std::function<std::string()> store = {};
};

// A back end. One object serves one compiled function of one rank, all of its graphs and recompilations.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  // Runs in the fiber of the rank that compiles, outside of any capture; of the pieces of a split graph in the order in
  // which they are called. What it throws ends the call that compiled; nothing is put into the cache.
  virtual CompiledGraph compile(const BackendInput& input) = 0;

  // A back end that takes part in CompileOptions::cache_dir overrides these two and gives CompiledGraph::store.
  // cache_key(): what decides, beside the input, what compile() makes and how it is written: a version, options. None:
  // the back end takes no part.
  virtual std::optional<std::string> cache_key() const { return std::nullopt; }
  // What compile() would make of the input, from what was stored of an input that was the same in all that a key holds
  // (docs/COMPILE.md lists it). What it throws is a miss: the graph is compiled.
  virtual CompiledGraph restore(const BackendInput& input, const std::string& stored);
};

// What the operators of the graph itself give for the example inputs, one value for each output: the statement of a
// back end that keeps layouts, and what one that changes some begins with. Call it within compile(). Throws what
// operators throw for inputs that they cannot take in these layouts; compile() gets none of that kind.
std::vector<graph::ValueMeta> outputs_of(const BackendInput& input);

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
