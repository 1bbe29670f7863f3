// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

class RunnableGraph;

// Runs a graph node by node: operators through LibTorch's dispatcher, boxed. Everything that can be known before is
// looked up once, when it is made. A value is dropped after its last use, so that memory peaks as it would in the
// program; a placeholder's value lives on only if the caller keeps it.
//
// It knows, of graphs as torch.export and as Dynamo make them:
// - operators of the dispatcher (torch.ops.*), and the higher-order operators cond, while_loop, invoke_subgraph,
//   wrap_with_set_grad_enabled, wrap_with_autocast, tag_activation_checkpoint and wrap;
// - Python's arithmetic, comparisons and items, of numbers (_operator.*, math.*, torch.sym_*) and of tensors;
// - methods of tensors, torch.* and torch._C._nn.* that are operators of ATen: the overload is chosen at each call by
//   the kinds of the arguments; of torch.nn.functional relu, dropout, layer_norm, group_norm, batch_norm and embedding;
// - torch._check, torch._C._set_grad_enabled (until the graph's end at most), torch.amp's _enter_ and _exit_autocast;
// - submodules that have graphs, and without one Linear, Embedding and ReLU (as if not in place); attributes that have
//   tensors.
// Gradient mode is the caller's at first, and must be off where a graph changes a leaf in place.
//
// Reads the module when made, a shared submodule once, and keeps it; the module must not change while the interpreter
// lives. May be used by several fibers at once, also when one is suspended in a node.
class Interpreter {
 public:
  // Throws GraphError for what it does not know, naming node and field.
  explicit Interpreter(std::shared_ptr<const GraphModule> module);
  ~Interpreter();
  Interpreter(Interpreter&&) noexcept;
  Interpreter& operator=(Interpreter&&) noexcept;

  // `inputs`: one for each placeholder, in order. Returns what the graph returns: the items of a list, each by itself,
  // or one value. Throws GraphError for a wrong number of inputs; errors of operators leave as they are, with the name
  // and source line of the node added.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs) const;

  // Called after each node of this graph (not of bodies) with its value, when the values that it was the last to use
  // are gone.
  void set_observer(std::function<void(const Node&, const c10::IValue&)> observer);

 private:
  std::unique_ptr<RunnableGraph> graph_;
};

}  // namespace rehearse::graph
