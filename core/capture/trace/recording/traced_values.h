// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "capture/trace/recording/graph_builder.h"
#include "capture/trace/recording/inputs.h"
#include "capture/trace/recording/view_families.h"

namespace rehearse::capture {

// Which node has the value of a fake tensor.
class Values {
 public:
  Values(GraphBuilder& graph, Inputs& inputs, const ViewFamilies& families)
      : graph_(graph), inputs_(inputs), families_(families) {}

  // A result of `node`: the value itself, or item path[0] of it, and so on. A fake that had a value already was
  // changed in place; from now on it is this one.
  void add(const at::Tensor& fake, graph::Node& node, std::vector<std::int64_t> path);

  // Its value begins to require grad although no operator gives it anew: a view of it was written. `by`: the number of
  // the node that does so, see graph::Metadata.
  void note_history(const at::Tensor& fake, std::size_t by);

  // The node with the value of a fake, made now for items and inputs. Throws NotCapturable for what has a history of
  // its own, hooks or a gradient: autograd saw something that the graph does not have.
  graph::Node& node_of(const at::Tensor& fake);

  // Nodes for inputs that the code has told to require grad and that nothing has used since.
  void record_switched_inputs();

  // Whether the code has told the tensor to require grad, which required none.
  bool is_made_leaf(const at::Tensor& fake) const;

  // Throws as node_of() does.
  void check_history(const at::Tensor& fake) const;

  // Fakes that the code holds, and those that stand for inputs which were changed in place; in order of their making.
  std::vector<at::Tensor> alive();

  // What is known now, for code that is recorded for later: a backward's.
  struct Snapshot;
  Snapshot snapshot() const;
  // Whether the code still holds a fake that was made since.
  bool is_alive_since(const Snapshot& before) const;
  // Forgets what was made since, and which nodes have changed values in place since.
  void restore(const Snapshot& before);

  // Whoever keeps this fake will not use it: it may outlive the capture.
  void disown(const at::Tensor& fake);

  // The line that made a fake which is alive and not among `results`: it would outlive the capture. Null: there is
  // none.
  const exec::CallSite* find_outlived(const std::vector<at::Tensor>& results) const;

 private:
  struct Value {
    graph::Node* node = nullptr;      // null: an item that nothing used so far
    graph::Node* producer = nullptr;  // of items
    std::vector<std::int64_t> path = {};
    bool requires_grad = false;       // as the graph has it
    std::size_t history_from = 0;     // see graph::Metadata
    bool is_leaf = false;             // it requires grad because the code has told it to
    graph::Node* detached = nullptr;  // the same without its history, for tensor.data()
    std::optional<c10::weak_intrusive_ptr<c10::TensorImpl>> tensor = {};  // not what data() gives
  };
  struct Made {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
    const graph::Node* node;
  };

  void restore(std::uint64_t id, Value& value, const Value* before);
  Value& value_of(const at::Tensor& fake);
  static bool is_own(const Value& value, const at::Tensor& fake);
  graph::Node& item(Value& value);
  graph::Node& with_requires_grad(const at::Tensor& fake, Value& value);
  graph::Node& begin_leaf(const at::Tensor& fake, Value& value);
  const exec::CallSite& site_of(const at::Tensor& fake) const;

  GraphBuilder& graph_;
  Inputs& inputs_;
  const ViewFamilies& families_;
  std::unordered_map<std::uint64_t, Value> values_;                   // by fake_id()
  std::unordered_map<std::uint64_t, std::size_t> history_of_inputs_;  // of those that nothing used so far
  std::vector<Made> made_;
};

struct Values::Snapshot {
  std::unordered_map<std::uint64_t, Value> values;
  std::size_t made = 0;
};

}  // namespace rehearse::capture
