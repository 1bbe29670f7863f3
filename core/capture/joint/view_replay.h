// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include <rehearse/graph/graph_module.h>

namespace rehearse::capture {

// Collects from a joint graph how returned views derive from their bases, and builds a module that makes them again.
class ViewReplay {
 public:
  // `without_grad_mode`: true for a node of the joint graph that was called without grad mode. Such a view has no
  // history.
  explicit ViewReplay(std::function<bool(const graph::Node&)> without_grad_mode)
      : without_grad_mode_(std::move(without_grad_mode)) {}

  // Adds a placeholder that stands for `node`. Null: the placeholder is unused.
  void add_source(const graph::Node* node);

  // True if the sources suffice to make `view` with view operators, items of lists, and numbers such as sizes. An
  // in-place operator counts as the tensor that it changes. A change of sizes or strides in place would be lost, so
  // has_other_form() must be false.
  bool can_make(const graph::Node& view) const;
  // True if an in-place operator has changed the sizes, strides or offset of `view` or of a tensor from which it was
  // made.
  static bool has_other_form(const graph::Node& view);
  // Returns the view's position among the module's outputs. can_make(view) must hold.
  std::size_t add(const graph::Node& view);

  // Returns the module, or null if no view was added. Call add() no more afterwards.
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
