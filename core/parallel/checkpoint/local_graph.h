// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <rehearse_internal/libtorch/nodes.h>

namespace rehearse::parallel {

// The part of autograd's graph that the calling fiber has recorded since a given moment: all nodes (here called steps)
// between some results and tensors that existed before. Autograd numbers the nodes of each thread separately. A node of
// another thread of the rank counts as older if its number is smaller than the number that now() returned at the given
// moment.
class LocalGraph {
 public:
  // The current moment: this fiber's steps from now on are newer.
  static std::uint64_t now();

  // `results` must require grad. `begin`: an earlier result of now(). Does not change autograd's nodes.
  LocalGraph(const std::vector<at::Tensor>& results, std::uint64_t begin);

  // The edges by which gradients leave the graph, to older nodes. Each edge occurs once, in the order in which a walk
  // from the results finds them.
  const torch::autograd::edge_list& exits() const noexcept { return exits_; }

  // Drops the graph's references to its steps. The caller must have dropped the results before. Steps that still exist
  // afterwards are the history of tensors that the program keeps.
  void release() { roots_.clear(); }

  // Call it after release(). Returns a step that still exists; null if there is none. Steps of views of older tensors
  // do not count, because LibTorch makes such a step when a view is first used after its base has changed. `is_input`:
  // true for the edge of an input; a view of an input is not older than the graph, so its step counts.
  libtorch::NodePtr find_kept(const std::function<bool(const torch::autograd::Edge&)>& is_input) const;

  // Call it after release(). From now on, steps that still exist count as older than the graph, so edges to them are
  // exits.
  void leave_out_kept();

  // Runs backward through the graph. `gradients`: the gradients of the results. Returns the gradient for each exit;
  // undefined if the exit has none, or if `wanted` is false for it. Runs neither nodes outside of the graph nor their
  // hooks. Call it once, because the steps free what they have saved.
  torch::autograd::variable_list run_backward(torch::autograd::variable_list gradients,
                                              const std::vector<bool>& wanted);

 private:
  // The target of an edge: a step of the graph, by its index, or an older node.
  struct Target {
    std::optional<std::size_t> step;
    torch::autograd::Edge edge;  // valid if it leads to an older node
    std::uint32_t input_nr = 0;
  };
  struct Step {
    libtorch::WeakNodePtr node;
    std::vector<Target> targets;  // the targets of its next edges, in their order
  };

  void record_steps();
  Target target_of(const torch::autograd::Edge& edge);
  void list_exits();
  void list_exit(const Target& target, std::vector<std::size_t>& to_visit);
  std::vector<libtorch::NodePtr> put_ends_in_place_of_exits();

  const std::uint64_t begin_;
  torch::autograd::edge_list roots_;
  std::vector<Target> targets_of_roots_;
  std::vector<Step> steps_;
  std::unordered_map<const torch::autograd::Node*, std::size_t> step_of_;
  torch::autograd::edge_list exits_;
};

}  // namespace rehearse::parallel
