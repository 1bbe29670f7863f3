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
  int id = 0;                           // the value of partition_of()
  std::string name;                     // its name in the split module: "submod_<id>", or "submod_<id>_<n>"
  std::shared_ptr<GraphModule> module;  // its placeholders are `inputs`, in order
  std::vector<const Node*> inputs;      // nodes of the original graph
  std::vector<const Node*> outputs;     // a single one is returned as it is, none or several as a list
};

// The order in which the split module calls partitions.
enum class PartitionOrder {
  Fx,       // as torch.fx orders them
  Program,  // the graph's own order; partition ids must then not decrease
};

struct SplitModule {
  // Placeholders and attributes, then one call per partition, each followed by a getitem for each of several outputs,
  // then the output.
  std::shared_ptr<GraphModule> module;
  std::vector<Partition> partitions;  // in the order of their calls
};

// Splits a module as torch.fx.passes.split_module does with its default options: placeholders, attributes and the
// output stay outside; every other node goes into partition partition_of(node). split_by() calls partition_of() once
// for each such node, in order. The orders of partitions, inputs and outputs, and all names, are fx's, unless the list
// below says otherwise.
// - If a value crosses into a partition, the symbols in its metadata become inputs of the partition, too, provided that
//   a node before the use has this symbol as its value (fx also considers nodes after the use, and then finds a cycle).
// - `torch._C._set_grad_enabled`, `torch.amp.autocast_mode._enter_autocast` and `_exit_autocast` take effect until they
//   are undone. So later partitions in which they hold begin by repeating them. Partition ids must then not decrease.
// - Partitions are called in `order`. fx's order looks only at inputs: among the partitions whose inputs exist, it
//   calls the one that became ready last. In-place changes and draws of random numbers are no inputs. So fx's order may
//   call a partition that reads a value before an earlier partition that changes the value.
// - Shares tensors and submodules with `module`, and copies the metadata. `module` does not change.
// - Names: the dots in a called submodule's name become '_' (`a.b` is `a_b` in its partition). If that name, or
//   submod_<id> in the split module, is taken by another object, the later one gets a number: `a_b_1`. fx overwrites
//   the object instead.
// Throws GraphError if partitions depend on each other in a cycle, if a node precedes one that it uses, if there are
// two outputs, if a target names nothing, or if a partition could not repeat a change of grad mode or autocast. Cost:
// linear in nodes and arguments.
SplitModule split_by(const GraphModule& module, const std::function<int(const Node&)>& partition_of,
                     PartitionOrder order = PartitionOrder::Fx);

}  // namespace rehearse::graph
