// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

class RunnableGraph;

// Runs a graph node by node. Calls operators boxed, through LibTorch's dispatcher. The constructor looks up everything
// that does not depend on inputs. The interpreter drops each value after its last use, so that memory peaks as in the
// original program; a placeholder's value lives on only if the caller keeps it.
//
// The interpreter supports the graphs of compile() and of torch.export, which use:
// - operators of the dispatcher (torch.ops.*), and the higher-order operators cond, while_loop, invoke_subgraph,
//   wrap_with_set_grad_enabled, wrap_with_autocast, tag_activation_checkpoint, wrap, and Rehearse's own register_hook;
// - Python's arithmetic and comparisons of numbers (_operator.*; math.trunc, floor and ceil; torch.sym_*);
//   _operator.getitem of lists, tuples and dicts;
// - wait() and synchronize() of c10d::Work;
// - torch._C._set_grad_enabled (until the graph's end at most), torch.amp's _enter_ and _exit_autocast;
// - submodules with graphs; attributes with tensors.
// The graph starts in the caller's grad mode, which must be off if the graph changes a leaf in place.
//
// The constructor reads the module (a shared submodule once) and keeps it. The module must not change while the
// interpreter lives. Several fibers may use it at once, also while one is suspended in a node.
class Interpreter {
 public:
  // Throws GraphError for what it does not support, naming node and field.
  explicit Interpreter(std::shared_ptr<const GraphModule> module);
  ~Interpreter();
  Interpreter(Interpreter&&) noexcept;
  Interpreter& operator=(Interpreter&&) noexcept;

  // `inputs`: one for each placeholder, in order. Returns the items of the list that the graph returns, or its one
  // value. Throws GraphError for a wrong number of inputs. Errors of operators pass through; a c10::Error
  // gets the node's name and source line added.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs) const;

  // Sets a function to call after each node of this graph except its output, but not after the nodes of bodies. It gets
  // the node and the node's value. By then, the interpreter has dropped the values that this node was the last to use.
  void set_observer(std::function<void(const Node&, const c10::IValue&)> observer);

 private:
  std::unique_ptr<RunnableGraph> graph_;
};

}  // namespace rehearse::graph
