// SPDX-License-Identifier: BSD-3-Clause
#include "compile/partitions/leaf_cuts.h"

#include <algorithm>
#include <unordered_map>

#include <rehearse/graph/split.h>

namespace rehearse::compiler {
namespace {

using graph::Node;
using graph::Op;

// Follows items of a list or tuple to the node that returned the list, because the items must be in the piece of that
// node.
const Node& source_of(const Node& node) {
  const Node* of = &node;
  while (of->op() == Op::CallFunction && of->target() == "_operator.getitem" && of->args().at(0).node() != nullptr &&
         of->args().at(0).node()->op() != Op::Placeholder) {
    of = of->args().at(0).node();
  }
  return *of;
}

bool is_leaf_node(const Node& node) {
  return node.op() == Op::CallFunction && node.target() == "torch.ops.aten.requires_grad_.default";
}

// Numbers the pieces. A new piece begins with each bucket, with each leaf, and after each leaf.
class PieceNumbers {
 public:
  explicit PieceNumbers(const std::vector<parallel::ForwardBucket>& buckets) : first_of_bucket_(buckets.size(), -1) {
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      for (const Node* node : buckets[i].nodes) bucket_of_.emplace(node, i);
    }
  }

  // Call it once for each node, in the order of the graph.
  int of(const Node& node) {
    const auto found = bucket_of_.find(&source_of(node));
    const std::size_t bucket = found != bucket_of_.end() ? found->second : bucket_;
    if (bucket != bucket_ || was_leaf_ || is_leaf_node(node)) ++number_;
    bucket_ = bucket;
    was_leaf_ = is_leaf_node(node);
    if (bucket < first_of_bucket_.size() && first_of_bucket_[bucket] < 0) first_of_bucket_[bucket] = number_;
    return number_;
  }

  const std::vector<int>& first_of_bucket() const noexcept { return first_of_bucket_; }

 private:
  std::unordered_map<const Node*, std::size_t> bucket_of_;
  std::vector<int> first_of_bucket_;
  std::size_t bucket_ = 0;
  int number_ = 0;
  bool was_leaf_ = false;
};

}  // namespace

bool makes_leaf(const graph::GraphModule& module) { return std::ranges::any_of(module.graph(), is_leaf_node); }

LeafCuts cut_at_leaves(const graph::GraphModule& module, const std::vector<parallel::ForwardBucket>& buckets) {
  PieceNumbers numbers(buckets);
  graph::SplitModule split =
      graph::split_by(module, [&](const Node& node) { return numbers.of(node); }, graph::PartitionOrder::Program);
  LeafCuts cuts{std::move(split.module), {}};
  for (const int first : numbers.first_of_bucket()) {
    const auto piece =
        std::ranges::find_if(split.partitions, [&](const graph::Partition& each) { return each.id == first; });
    cuts.piece_of_bucket.push_back(piece != split.partitions.end() ? piece->name : "");
  }
  return cuts;
}

}  // namespace rehearse::compiler
