// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include <rehearse/capture/segments.h>

#include "capture/graph/expression_nodes.h"
#include "capture/trace/recording/graph_builder.h"
#include "capture/trace/recording/inputs.h"

namespace rehearse::capture {

// Takes segments out of the graph of a whole capture, which goes on.
class SegmentCutter {
 public:
  SegmentCutter(GraphBuilder& graph, Inputs& inputs, ExpressionNodes& symbols)
      : graph_(graph), inputs_(inputs), symbols_(symbols) {}

  // What was recorded since the last segment, up to `end` (null: all). Its results: those of `wanted` that are its own,
  // and its integers, in order of the graph.
  Segment take(const std::set<const graph::Node*>& wanted, const graph::Node* end);
  // The last one, which gives what the whole graph gives.
  Segment take_last(const graph::Argument& output);
  // A graph of this node alone, which stands between the last segment and the next one.
  Segment take_single(const graph::Node& node);
  // Whether the node was recorded since the last segment has ended.
  bool has(const graph::Node& node) const;
  std::size_t values() const noexcept { return numbers_.size(); }
  // How many segments have ended so far.
  std::size_t begun() const noexcept { return begun_; }
  // A value that comes into being between two segments.
  void add_value(const graph::Node& node) { numbers_.emplace(&node, numbers_.size()); }
  // The memory of a value that the code holds when a segment ends.
  void add_storage(const graph::Node& node, const at::Tensor& fake);
  // An operator that writes to its arguments has been recorded.
  void note_write() noexcept { has_written_ = true; }
  // The next segment begins behind what is recorded now. `brought`: how many nodes bring history up to here.
  void begin_next(std::size_t brought) {
    last_ = graph_.graph().last();
    has_written_ = false;
    ++begun_;
    brought_ = brought;
  }

  Segment::Source source_of(const graph::Node& node) const;

 private:
  class Copy;
  std::vector<const graph::Node*> nodes_until(const graph::Node* end) const;

  GraphBuilder& graph_;
  Inputs& inputs_;
  ExpressionNodes& symbols_;
  const graph::Node* last_ = nullptr;  // of the segment before
  std::map<const graph::Node*, std::size_t> numbers_;
  std::map<const graph::Node*, const c10::StorageImpl*> storages_;
  bool has_written_ = false;
  std::size_t begun_ = 0;
  std::size_t brought_ = 0;  // history, see graph::once_brought(), before the segment
};

}  // namespace rehearse::capture
