// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <rehearse/graph/graph_module.h>
#include <rehearse/parallel/bucket_splitter.h>

namespace rehearse::parallel {

struct CountedParameter {
  std::string name;
  std::int64_t bytes;
};

// Which parameters a node adds to its bucket. Asked for each node once, from the graph's end.
class ParameterUses {
 public:
  ParameterUses(const graph::GraphModule& module, const CountingRules& rules);

  std::vector<CountedParameter> of(const graph::Node& node);

 private:
  std::vector<const graph::Node*> counted_inputs(const graph::Node& node) const;
  void add_arguments(const graph::Node& node, std::vector<CountedParameter>& counted) const;
  void add_placeholder(const graph::Node& input, const graph::Node& user, std::vector<CountedParameter>& counted) const;
  void add_attribute(const graph::Node& node, std::vector<CountedParameter>& counted) const;
  void add_module(const std::string& target, const std::string& prefix, std::vector<CountedParameter>& counted);
  void add_parameters_of(const graph::GraphModule& module, const std::string& prefix,
                         std::vector<CountedParameter>& counted);

  const graph::GraphModule& module_;
  CountingRules rules_;
  std::unordered_set<const graph::GraphModule*> counted_modules_;
  std::unordered_map<const graph::Node*, const graph::Node*> first_use_;  // of placeholders; only without each_use
};

}  // namespace rehearse::parallel
