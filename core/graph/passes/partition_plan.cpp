// SPDX-License-Identifier: BSD-3-Clause
#include "graph/passes/partition_plan.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include <rehearse/graph/metadata.h>

#include "graph/ir/targets.h"

namespace rehearse::graph {
namespace {

bool calls(const Node& node, std::string_view target) {
  return node.op() == Op::CallFunction && node.target() == target;
}

// The symbol, if the node's value is a single symbol.
const std::string* bare_symbol(const Node& node) {
  const SymScalarMeta* scalar = node.meta().value ? node.meta().value->scalar() : nullptr;
  if (scalar == nullptr || scalar->kind == SymScalarMeta::Kind::Bool) return nullptr;
  return scalar->expression.symbol();
}

bool has_part(const Node& node) {
  return node.op() != Op::Placeholder && node.op() != Op::GetAttr && node.op() != Op::Output;
}

}  // namespace

bool sets_global_state(const Node& node) noexcept {
  return calls(node, kSetGradEnabled) || calls(node, kEnterAutocast) || calls(node, kExitAutocast);
}

PartitionPlan::PartitionPlan(const Graph& graph, const std::function<int(const Node&)>& partition_of,
                             PartitionOrder order) {
  assign(graph, partition_of);
  finish_regions();
  if (!autocast_.empty() || !grad_.empty()) check_ids_rise(graph, "with gradient modes or autocast in the graph");
  connect(graph);
  if (order == PartitionOrder::Fx) {
    sort_as_fx();
  } else {
    check_ids_rise(graph, "in the program's order");
    order_.resize(parts_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
  }
}

const std::size_t* PartitionPlan::part_of(const Node& node) const noexcept {
  const auto found = part_of_node_.find(&node);
  return found == part_of_node_.end() ? nullptr : &found->second;
}

void PartitionPlan::assign(const Graph& graph, const std::function<int(const Node&)>& partition_of) {
  part_of_node_.reserve(graph.size());
  position_.reserve(graph.size());
  for (const Node& node : graph) {
    position_.emplace(&node, position_.size());
    if (const std::string* symbol = bare_symbol(node)) node_of_symbol_.emplace(*symbol, &node);
    if (!has_part(node)) continue;
    const int id = partition_of(node);
    const auto [at, is_new] = part_of_id_.emplace(id, parts_.size());
    if (is_new) parts_.emplace_back().id = id;
    part_of_node_.emplace(&node, at->second);
    note_state(node, at->second);
  }
}

// Tracks which modes are on at this node, and notes the partitions in which they hold.
void PartitionPlan::note_state(const Node& node, std::size_t part) {
  if (calls(node, kSetGradEnabled)) {
    if (node.args().size() != 1 || !node.args()[0].is<bool>()) {
      throw GraphError(node.name(), "args", "a gradient mode is set by one bool, so that it can be set again");
    }
    grad_.push_back({&node, nullptr, {}});
  } else if (calls(node, kEnterAutocast)) {
    if (!node.input_nodes().empty()) {
      throw GraphError(node.name(), "args", "autocast must be entered with constants, so that it can be done again");
    }
    open_autocasts_.push_back(autocast_.size());
    autocast_.push_back({&node, nullptr, {}});
  } else if (calls(node, kExitAutocast)) {
    const Node* enter = node.args().size() == 1 ? node.args()[0].node() : nullptr;
    const auto open =
        std::ranges::find_if(open_autocasts_, [&](std::size_t region) { return autocast_[region].enter == enter; });
    if (open == open_autocasts_.end()) {
      throw GraphError(node.name(), "args[0]", "is not the node of an autocast that is on");
    }
    autocast_[*open].exit = &node;
    autocast_[*open].parts.push_back(part);
    open_autocasts_.erase(open);
  }
  if (!grad_.empty()) grad_.back().parts.push_back(part);
  for (const std::size_t region : open_autocasts_) autocast_[region].parts.push_back(part);
}

void PartitionPlan::finish_regions() {
  if (!open_autocasts_.empty()) {
    throw GraphError(autocast_[open_autocasts_.front()].enter->name(), "", "this autocast is never left");
  }
  for (std::vector<Region>* regions : {&autocast_, &grad_}) {
    for (Region& region : *regions) {
      std::ranges::sort(region.parts,
                        [&](std::size_t left, std::size_t right) { return parts_[left].id < parts_[right].id; });
      region.parts.erase(std::unique(region.parts.begin(), region.parts.end()), region.parts.end());
    }
  }
}

void PartitionPlan::check_ids_rise(const Graph& graph, const std::string& because) const {
  const Node* before = nullptr;
  for (const Node& node : graph) {
    const std::size_t* part = part_of(node);
    if (part == nullptr) continue;
    if (before != nullptr && parts_[*part].id < parts_[*part_of(*before)].id) {
      throw GraphError(node.name(), "partition",
                       "is " + std::to_string(parts_[*part].id) + " after " +
                           std::to_string(parts_[*part_of(*before)].id) + " of '" + before->name() + "'; " + because +
                           " the partitions must not decrease");
    }
    before = &node;
  }
}

void PartitionPlan::connect(const Graph& graph) {
  const Node* const output = graph.output_node();
  for (const Node& node : graph) {
    if (node.op() == Op::Placeholder || node.op() == Op::GetAttr || sets_global_state(node)) continue;
    if (node.op() == Op::Output && &node != output) {
      throw GraphError(node.name(), "op", "there is another output, '" + output->name() + "'");
    }
    const Node* user = node.op() == Op::Output ? nullptr : &node;
    for (const Node* input : node.input_nodes()) {
      if (position_.at(input) > position_.at(&node)) {
        throw GraphError(node.name(), "args", "it uses '" + input->name() + "', which stands after it");
      }
      record_use(*input, user);
    }
  }
}

// `user`: null for the graph's output.
void PartitionPlan::record_use(const Node& value, const Node* user) {
  const std::size_t* defined_in = part_of(value);
  const std::size_t* used_in = user != nullptr ? part_of(*user) : nullptr;
  if (defined_in == used_in || (defined_in != nullptr && used_in != nullptr && *defined_in == *used_in)) return;
  if (defined_in != nullptr) {
    parts_[*defined_in].outputs.insert(&value);
    if (used_in != nullptr) parts_[*defined_in].dependents.insert(*used_in);
  }
  if (used_in == nullptr) return;
  parts_[*used_in].inputs.insert(&value);
  record_symbols(value, *user, *used_in);
  if (defined_in != nullptr) parts_[*used_in].dependencies.insert(*defined_in);
}

void PartitionPlan::record_symbols(const Node& value, const Node& user, std::size_t used_in) {
  if (value.meta().value == nullptr) return;
  for (const std::string& symbol : free_symbols(*value.meta().value)) {
    const auto found = node_of_symbol_.find(symbol);
    if (found == node_of_symbol_.end() || position_.at(found->second) >= position_.at(&user)) continue;
    const Node& holder = *found->second;
    const std::size_t* defined_in = part_of(holder);
    if (defined_in != nullptr && *defined_in == used_in) continue;
    parts_[used_in].inputs.insert(&holder);
    if (defined_in == nullptr) continue;
    parts_[*defined_in].outputs.insert(&holder);
    parts_[*defined_in].dependents.insert(used_in);
    parts_[used_in].dependencies.insert(*defined_in);
  }
}

// fx's order: among the partitions that are ready, picks the one that became ready last.
void PartitionPlan::sort_as_fx() {
  std::vector<std::size_t> missing(parts_.size());
  std::vector<std::size_t> free;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    missing[part] = parts_[part].dependencies.items().size();
    if (missing[part] == 0) free.push_back(part);
  }
  while (!free.empty()) {
    const std::size_t part = free.back();
    free.pop_back();
    order_.push_back(part);
    for (const std::size_t dependent : parts_[part].dependents.items()) {
      if (--missing[dependent] == 0) free.push_back(dependent);
    }
  }
  if (order_.size() == parts_.size()) return;
  std::string ids;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    if (missing[part] > 0) ids += (ids.empty() ? "" : ", ") + std::to_string(parts_[part].id);
  }
  throw GraphError("", "partition", "there is a cycle among partitions " + ids);
}

}  // namespace rehearse::graph
