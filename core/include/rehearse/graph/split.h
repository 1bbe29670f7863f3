// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// One part of a split module.
struct Partition {
  int id = 0;                           // what partition_of() said
  std::string name;                     // its name in the split module: "submod_<id>", or "submod_<id>_<n>"
  std::shared_ptr<GraphModule> module;  // its placeholders are `inputs`, in order
  std::vector<const Node*> inputs;      // nodes of the original graph
  std::vector<const Node*> outputs;     // one: returned as it is; more: as a list
};

enum class PartitionOrder {
  Fx,       // torch.fx's
  Program,  // the graph's own; the ids of its partitions must then not decrease
};

struct SplitModule {
  std::shared_ptr<GraphModule> module;  // placeholders and attributes, then one call a partition, then the output
  std::vector<Partition> partitions;    // in the order in which they are called
};

// Splits a module as torch.fx.passes.split_module does with its default options: placeholders and attributes stay
// outside; each other node goes into partition partition_of(node), asked once for each node in order. Orders of
// partitions, inputs and outputs, and all names, are fx's.
// - A value that crosses a partition brings the symbols of its sizes with it as inputs, if a node before its use holds
//   such a symbol alone (fx takes nodes after it as well, and then finds a cycle).
// - `torch._C._set_grad_enabled`, `torch.amp.autocast_mode._enter_autocast` and `_exit_autocast` hold until they are
//   undone: later partitions begin with them again. Partition ids must then not decrease.
// - Partitions are called in `order`. In fx's order that is as soon as their inputs are there: in-place changes and
// draws
//   of random numbers are no inputs, and a partition that changes a value may be called after one that reads it later.
// - Attributes, submodules and metadata are shared with `module`, which stays as it is.
// - Names: the dots in a called submodule's name become '_' (`a.b` is `a_b` in its partition). Where that, or
//   submod_<id> in the split module, is the name of something else, the latter one gets a number: `a_b_1`. fx
//   overwrites instead.
// Throws GraphError when partitions depend on each other in a cycle, when a node stands before one that it uses, when
// there are two outputs, and when a target names nothing. Cost: linear in nodes and arguments.
SplitModule split_by(const GraphModule& module, const std::function<int(const Node&)>& partition_of,
                     PartitionOrder order = PartitionOrder::Fx);

}  // namespace rehearse::graph
