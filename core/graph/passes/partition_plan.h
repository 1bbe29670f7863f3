// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <rehearse/graph/split.h>

namespace rehearse::graph {

// A set that iterates in insertion order.
template <class T>
class OrderedSet {
 public:
  void insert(const T& item) {
    if (known_.insert(item).second) items_.push_back(item);
  }
  bool contains(const T& item) const { return known_.contains(item); }
  const std::vector<T>& items() const noexcept { return items_; }

 private:
  std::vector<T> items_;
  std::unordered_set<T> known_;
};

// The first half of a split: decides which node goes where, and what each partition takes and returns.
class PartitionPlan {
 public:
  struct Part {
    int id = 0;
    OrderedSet<const Node*> inputs;
    OrderedSet<const Node*> outputs;
    OrderedSet<std::size_t> dependencies;  // partitions whose values it takes
    OrderedSet<std::size_t> dependents;
  };

  // A mode that stays on after its node: grad mode or autocast.
  struct Region {
    const Node* enter = nullptr;
    const Node* exit = nullptr;      // for autocast
    std::vector<std::size_t> parts;  // the partitions in which it holds, by increasing id
  };

  PartitionPlan(const Graph& graph, const std::function<int(const Node&)>& partition_of, PartitionOrder order);

  const std::vector<Part>& parts() const noexcept { return parts_; }         // in order of their first nodes
  const std::vector<std::size_t>& order() const noexcept { return order_; }  // topological
  const std::vector<Region>& autocast_regions() const noexcept { return autocast_; }
  const std::vector<Region>& grad_regions() const noexcept { return grad_; }
  // The partition of a node; null for placeholders, attributes and the output.
  const std::size_t* part_of(const Node& node) const noexcept;

 private:
  using Visit = std::function<void(const Node&)>;

  void assign(const Graph& graph, const std::function<int(const Node&)>& partition_of);
  void note_state(const Node& node, std::size_t part);
  void finish_regions();
  // Throws GraphError if a node's partition has a lower id than the preceding node's partition. `because`: the reason
  // for this rule, for the error.
  void check_ids_rise(const Graph& graph, const std::string& because) const;
  void connect(const Graph& graph);
  void record_use(const Node& value, const Node* user);
  void record_symbols(const Node& value, const Node& user, std::size_t used_in);
  void sort_as_fx();

  std::vector<Part> parts_;
  std::unordered_map<int, std::size_t> part_of_id_;
  std::unordered_map<const Node*, std::size_t> part_of_node_;
  std::unordered_map<const Node*, std::size_t> position_;
  std::unordered_map<std::string, const Node*> node_of_symbol_;
  std::vector<std::size_t> order_;
  std::vector<Region> autocast_;
  std::vector<Region> grad_;
  std::vector<std::size_t> open_autocasts_;  // indices into autocast_
};

// True for nodes that change a mode for later nodes.
bool sets_global_state(const Node& node) noexcept;

}  // namespace rehearse::graph
