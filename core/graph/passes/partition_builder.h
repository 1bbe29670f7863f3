// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/graph/split.h>

#include "graph/ir/node_map.h"
#include "graph/passes/partition_plan.h"

namespace rehearse::graph {

// The second half of a split: builds the partitions' modules, in the same steps as fx's split_module, so that the names
// are the same.
class PartitionBuilder {
 public:
  PartitionBuilder(const GraphModule& module, const PartitionPlan& plan);

  std::vector<Partition> build();

 private:
  struct Building {
    Partition result;
    NodeMap copies;
  };

  Node& copy(Building& part, const Node& node, List args, Dict kwargs, const std::string& target);
  void enter_regions(const std::vector<PartitionPlan::Region>& regions);
  // `brought`: see once_brought().
  void add_inputs(std::size_t index, std::size_t brought);
  std::vector<std::size_t> brought_by_parts() const;
  void add_node(Building& part, const Node& node);
  void leave_autocasts();
  void add_output(std::size_t index);

  const GraphModule& module_;
  const PartitionPlan& plan_;
  std::vector<Building> parts_;
};

}  // namespace rehearse::graph
