// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/util/intrusive_ptr.h>

#include "capture/trace/recording/graph_builder.h"
#include "capture/trace/recording/inputs.h"
#include "capture/trace/recording/view_families.h"

namespace rehearse::capture {

// The nodes that have the values of fake tensors.
class Values {
 public:
  Values(GraphBuilder& graph, Inputs& inputs, const ViewFamilies& families)
      : graph_(graph), inputs_(inputs), families_(families) {}

  // Registers a result of `node`: the node's value itself if `path` is empty; otherwise item path[0] of the value, item
  // path[1] of that item, and so on. If the fake already had a value, the fake was changed in place, and the result is
  // its new value.
  void add(const at::Tensor& fake, graph::Node& node, std::vector<std::int64_t> path);

  // The value begins to require grad although no operator returns it anew, because code wrote to another tensor of its
  // family (ViewFamilies). `by`: the number of the node that wrote (see graph::Metadata).
  void note_history(const at::Tensor& fake, std::size_t by);

  // The node with the fake's value; creates nodes for items and inputs. Throws NotCapturable if the fake has its own
  // history, hooks or gradient: then autograd saw something that the graph does not contain.
  graph::Node& node_of(const at::Tensor& fake);

  // Adds nodes for inputs whose requires_grad the code has switched and that nothing has used since.
  void record_switched_inputs();

  // True if the tensor is a leaf because the code made it require grad.
  bool is_made_leaf(const at::Tensor& fake) const;
  // True if the tensor is no leaf in any call, because an operator with autograd computed it. The fake with this id may
  // have become real since.
  bool has_step(std::uint64_t id, const at::Tensor& tensor) const;
  // The node that made the tensor first, before changes in place. Null if no node did.
  const graph::Node* maker_of(const at::Tensor& fake) const;

  // Throws NotCapturable if an operator is about to write to a result of tensor.data(). Such a result has its own
  // version counter, but the graph has the tensor itself or a detach() of it. `written`: for each argument.
  void check_written(const std::vector<bool>& written, const torch::jit::Stack& arguments) const;

  // Throws like node_of().
  void check_history(const at::Tensor& fake) const;

  // The fakes that the code holds, and fakes of inputs that were changed in place, in order of creation.
  std::vector<at::Tensor> alive();

  // The current state, saved before recording code that runs later, in a backward.
  struct Snapshot;
  Snapshot snapshot() const;
  // True if the code still holds a fake made after the snapshot.
  bool is_alive_since(const Snapshot& before) const;
  // Forgets what was made after the snapshot, and in-place changes after it.
  void restore(const Snapshot& before);

  // Declares that the holder of this fake will not use it, so that the fake may outlive the capture.
  void disown(const at::Tensor& fake);

  // True if the code holds a tensor that requires grad and that a segment computed from the tensor with this id.
  bool have_used(std::uint64_t id) const;

  // Looks for a fake that would outlive the capture: it is alive and not among `results`. Returns the line that made
  // the fake. Null if there is no such fake.
  const exec::CallSite* find_outlived(const std::vector<at::Tensor>& results) const;

 private:
  struct Value {
    graph::Node* node = nullptr;      // null: an item that nothing has used yet
    graph::Node* producer = nullptr;  // for items
    std::vector<std::int64_t> path = {};
    bool requires_grad = false;       // in the graph
    std::size_t history_from = 0;     // see graph::Metadata
    bool is_leaf = false;             // it requires grad because the code set it
    bool has_step = false;            // it required grad when an operator made it
    graph::Node* detached = nullptr;  // the value without its history, for tensor.data()
    std::optional<c10::weak_intrusive_ptr<c10::TensorImpl>> tensor = {};  // the value's object; no result of data()
  };
  struct Made {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
    const graph::Node* node;
  };

  void restore(std::uint64_t id, Value& value, const Value* before);
  Value& value_of(const at::Tensor& fake);
  bool is_from_data(const at::Tensor& fake) const;
  static bool is_own(const Value& value, const at::Tensor& fake);
  graph::Node& item(Value& value);
  graph::Node& with_requires_grad(const at::Tensor& fake, Value& value);
  graph::Node& begin_leaf(const at::Tensor& fake, Value& value);
  const exec::CallSite& site_of(const at::Tensor& fake) const;

  GraphBuilder& graph_;
  Inputs& inputs_;
  const ViewFamilies& families_;
  std::unordered_map<std::uint64_t, Value> values_;                   // by fake_id()
  std::unordered_map<std::uint64_t, std::size_t> history_of_inputs_;  // by fake_id(): inputs that nothing has used yet
  std::vector<Made> made_;
};

struct Values::Snapshot {
  std::unordered_map<std::uint64_t, Value> values;
  std::size_t made = 0;
};

}  // namespace rehearse::capture
