// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <rehearse/graph/graph_module.h>
#include <rehearse/parallel/bucket_splitter.h>

namespace rehearse::parallel {

struct CountedParameter {
  std::string name;
  std::int64_t bytes;
};

// Finds the parameters that a node adds to its bucket. Call of() once for each node, from the graph's end.
class ParameterUses {
 public:
  ParameterUses(const graph::GraphModule& module, const CountingRules& rules);

  std::vector<CountedParameter> of(const graph::Node& node);

  // The parameters that DDP reduces but that by `rules` count at no node, in the order of their first uses.
  static std::vector<std::string> uncounted(const graph::GraphModule& module, const CountingRules& rules);

 private:
  // Identifies a parameter: a placeholder, a tensor or, if only metadata is known, the attribute.
  using Identity = const void*;
  struct Use {
    Identity parameter;
    std::string name;
    const graph::TensorMeta* meta;
  };
  using Uses = std::vector<Use>;

  Uses uses_by(const graph::Node& node);
  bool counts(const Use& use, const graph::Node& node);
  std::vector<const graph::Node*> counted_inputs(const graph::Node& node) const;
  void add_placeholder(const graph::Node& input, Uses& uses) const;
  void add_attribute(const graph::Node& fetch, Uses& uses) const;
  void add_module(const std::string& target, const std::string& prefix, const graph::Node& node, Uses& uses);

  const graph::GraphModule& module_;
  CountingRules rules_;
  // The node at which a called module counts.
  std::unordered_map<const graph::GraphModule*, const graph::Node*> counted_at_;
  std::unordered_map<Identity, const graph::Node*> first_use_;  // only without each_use
};

}  // namespace rehearse::parallel
