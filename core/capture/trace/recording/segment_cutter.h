// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include <c10/core/Storage.h>

#include <rehearse/capture/segments.h>

#include "capture/graph/expression_nodes.h"
#include "capture/trace/recording/graph_builder.h"
#include "capture/trace/recording/inputs.h"

namespace rehearse::capture {

// Takes segments out of the graph of a whole capture, which keeps growing.
class SegmentCutter {
 public:
  SegmentCutter(GraphBuilder& graph, Inputs& inputs, ExpressionNodes& symbols)
      : graph_(graph), inputs_(inputs), symbols_(symbols) {}

  // Takes the nodes between the last segment and `end` (null: all that follow the last segment). The results are the
  // segment's nodes that are numbers or are in `wanted`, in the order of the graph.
  Segment take(const std::set<const graph::Node*>& wanted, const graph::Node* end);
  // Takes the last segment, which returns the results of the whole graph.
  Segment take_last(const graph::Argument& output);
  // Makes a graph of this one node, which runs between the last segment and the next one.
  Segment take_single(const graph::Node& node);
  // True if the node was recorded after the end of the last segment.
  bool has(const graph::Node& node) const;
  std::size_t values() const noexcept { return numbers_.size(); }
  // The number of calls of begin_next().
  std::size_t begun() const noexcept { return begun_; }
  // Gives a number to a value that later segments may use: a result of a segment, or of an eager region between two
  // segments.
  void add_value(const graph::Node& node) { numbers_.emplace(&node, numbers_.size()); }
  // Notes the memory of an input, or of a value that the code holds when a segment ends.
  void add_storage(const graph::Node& node, const at::Tensor& fake);
  // Notes that an operator that writes to its arguments was recorded.
  void note_write() noexcept { has_written_ = true; }
  // The next segment begins after the last recorded node. `brought`: number of nodes that bring history up to here (see
  // graph::once_brought()).
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
  const graph::Node* last_ = nullptr;  // last node of the previous segment
  std::map<const graph::Node*, std::size_t> numbers_;
  // Weak references, so that a later storage does not get the address of one that is gone.
  std::map<const graph::Node*, c10::weak_intrusive_ptr<c10::StorageImpl>> storages_;
  bool has_written_ = false;
  std::size_t begun_ = 0;
  std::size_t brought_ = 0;
};

}  // namespace rehearse::capture
