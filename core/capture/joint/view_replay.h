// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include <rehearse/graph/graph_module.h>

namespace rehearse::capture {

// Collects from a joint graph how returned views come from their bases, as a module that makes them anew.
class ViewReplay {
 public:
  // `without_grad_mode`: of a node of the joint graph. A view that was made there has no history of its own.
  explicit ViewReplay(std::function<bool(const graph::Node&)> without_grad_mode)
      : without_grad_mode_(std::move(without_grad_mode)) {}

  // The module's next placeholder stands for this node; for nothing that a view is made of where it is null.
  void add_source(const graph::Node* node);

  // Whether `view` comes from the sources by views, items and numbers alone. In-place operators on the way count as
  // what they change: has_other_form() must not hold.
  bool can_make(const graph::Node& view) const;
  // Whether an in-place operator has given the tensor, or one that it is a view of, other sizes or strides.
  static bool has_other_form(const graph::Node& view);
  // The position of the view among the module's outputs. can_make(view) must hold.
  std::size_t add(const graph::Node& view);

  // Null when no view was added. Nothing can be added then.
  std::shared_ptr<graph::GraphModule> finish();

 private:
  graph::Node& take(const graph::Node& node);
  graph::Node& copy_of(const graph::Node& node);
  void set_grad_mode(bool enabled);

  std::function<bool(const graph::Node&)> without_grad_mode_;
  std::shared_ptr<graph::GraphModule> module_ = std::make_shared<graph::GraphModule>();
  std::unordered_map<const graph::Node*, graph::Node*> copies_;
  graph::List views_;
};

}  // namespace rehearse::capture
