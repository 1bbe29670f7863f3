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

// Back ends compile captured graphs: the counterpart of torch.compile's `backend`.
namespace rehearse::compiler {

// One graph to compile: the whole forward, or one partition of it.
struct BackendInput {
  std::shared_ptr<graph::GraphModule> module;
  // One for each placeholder, in order: fake tensors and symbolic integers. They belong to the capture that made them:
  // the back end may read them during compile() but must not keep them.
  std::vector<c10::IValue> example_inputs;
  std::shared_ptr<shapes::ShapeEnv> shapes;  // for the symbols in example_inputs; may be null if there are none
  std::string name;                          // "forward", or "submod_1" for a partition
  // A back end that falls back to eager autograd calls this, during compile() only, with the reason, which explain()
  // shows. Empty if nobody records the reason.
  std::function<void(const std::string& why)> note_eager = {};
  // For each output: true if it must have the strides and offset that it has in the graph, because it shares memory
  // with something that is used later (an argument or another output), or because its storage offset depends on data.
  // The back end may choose the layout of other outputs if it states it in CompiledGraph::outputs. Empty: every layout
  // is free.
  std::vector<bool> fixed_layouts = {};
};

// The result of a back end: a function that runs the graph, and what the back end states about its outputs.
struct CompiledGraph {
  // Runs the graph: one input for each placeholder, in order; one output for each item of the graph's list of outputs.
  // A function that takes `inputs` by value, or moves from them, owns them and frees an input early by dropping it. A
  // function that takes a const reference saves the reference counting. Several fibers may call it, also while another
  // call of it is suspended. Errors of operators must pass through unchanged.
  using Run = std::function<std::vector<c10::IValue>(std::vector<c10::IValue>&& inputs)>;

  CompiledGraph() = default;
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, CompiledGraph> && std::convertible_to<F, Run>)
  CompiledGraph(F&& function, std::optional<std::vector<graph::ValueMeta>> stated = std::nullopt)
      : run(std::forward<F>(function)), outputs(std::move(stated)) {}

  explicit operator bool() const noexcept { return static_cast<bool>(run); }
  std::vector<c10::IValue> operator()(std::vector<c10::IValue> inputs) const { return run(std::move(inputs)); }

  Run run;
  // The sizes, strides, storage offset and dtype of each output of `run`; compile() ignores the other fields. An output
  // that is no tensor has an empty ValueMeta. The back end chooses strides and offset, except as
  // BackendInput::fixed_layouts says; sizes and dtype must be those of outputs_of(). The piece that takes an output is
  // compiled for the layout stated here. An output is copied into the graph's layout if it leaves the compiled
  // function, or if the next piece needs that layout (for a view() of it, or for an operator of your own).
  //
  // nullopt: the back end states nothing. Then each call compares its outputs with outputs_of() and copies those that
  // have another layout. If the back end states layouts, compile() trusts them for outputs that leave the function, and
  // compares them for outputs that enter the next piece. CompileOptions::check_backend compares all of them.
  std::optional<std::vector<graph::ValueMeta>> outputs = std::nullopt;

  // For CompileOptions::cache_dir: returns the text from which Backend::restore() makes this graph in another process.
  // Called at most once, right after compile(). If it throws, the graph is not written, and the error's text is the
  // reason. Empty: the graph is never written.
  std::function<std::string()> store = {};
};

// A back end. If the caller names it, each compiled function has one object on each rank, which serves all of its
// graphs and recompilations. An object that the caller passes serves all ranks that call the function.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  // Runs in the fiber of the rank that compiles, outside of any capture. Gets the pieces of a split graph in the order
  // of their calls. If it throws, the call that needed the graph throws the same, and adds no entry to the cache.
  virtual CompiledGraph compile(const BackendInput& input) = 0;

  // To take part in CompileOptions::cache_dir, a back end overrides these two functions and sets CompiledGraph::store.
  // The results of compile(), and the form in which they are stored, depend on the input and on further facts, such as
  // a version and options. cache_key() returns all of these further facts. nullopt: the back end does not take part.
  virtual std::optional<std::string> cache_key() const { return std::nullopt; }
  // Makes the result of compile() from what was stored for an equal input; docs/COMPILE.md lists what equal inputs have
  // in common. If it throws, that is a cache miss, and compile() makes the graph.
  virtual CompiledGraph restore(const BackendInput& input, const std::string& stored);
};

// Describes what the graph's own operators return for the example inputs: one value for each output. A back end that
// keeps all layouts states these values; a back end that changes some layouts starts from them. Call it within
// compile() only. Throws what operators throw for inputs whose layouts they cannot take; compile() never passes such
// inputs.
std::vector<graph::ValueMeta> outputs_of(const BackendInput& input);

using BackendFactory = std::function<std::shared_ptr<Backend>()>;

// Makes `name` a value of CompileOptions::backend for the whole process. Throws std::invalid_argument if the name is
// empty or taken, or if the factory is empty.
void register_backend(std::string name, BackendFactory factory);

// Returns a new back end of that name. Always available: "eager" (runs the graph node by node), "counting" (the same,
// and counts; see counting_backend.h) and "aot_eager" (a forward and a backward graph; see aot_eager.h). If the name is
// neither one of these nor registered, throws std::invalid_argument, which lists the known names.
std::shared_ptr<Backend> make_backend(std::string_view name);

// The names that make_backend() knows, sorted.
std::vector<std::string> backend_names();

}  // namespace rehearse::compiler
