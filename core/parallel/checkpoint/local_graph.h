// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

namespace rehearse::parallel {

// The part of autograd's graph that the calling fiber has recorded since a moment: all steps that lead from some
// results to tensors that existed before. Steps of other threads of the rank count as older.
class LocalGraph {
 public:
  // The moment from which on steps are new, for this fiber.
  static std::uint64_t now();

  // `results`: those that require grad. Changes none of autograd's steps.
  LocalGraph(const std::vector<at::Tensor>& results, std::uint64_t begin);

  // Where gradients leave the graph: its edges to older steps, each once, in the order in which a walk from the results
  // finds them.
  const torch::autograd::edge_list& exits() const noexcept { return exits_; }

  // Drops the graph's references to its steps. Call it when the results have been dropped, too: all steps that are left
  // then are the history of tensors that somebody keeps.
  void release() { roots_.clear(); }

  // After release(): a step that is left and leads to other steps of the graph, or to one of `leaves`. Null: there is
  // none. A view of an older tensor does neither: LibTorch gives it a new step the first time that it is used after its
  // base has changed.
  std::shared_ptr<torch::autograd::Node> find_kept(const std::vector<at::Tensor>& leaves) const;

  // After release(): from now on, steps that are left count as older than the graph, so that edges to them are exits.
  void leave_out_kept();

  // Runs backward through the graph and gives the gradient of each exit; undefined: none has come, or `wanted` does not
  // have it. Runs no step outside of the graph, and none of its hooks. `gradients`: of the results. Call it once: the
  // steps free what they have saved.
  torch::autograd::variable_list run_backward(torch::autograd::variable_list gradients,
                                              const std::vector<bool>& wanted);

 private:
  // Where an edge leads: to a step of the graph, by its index, or to an older one.
  struct Target {
    std::optional<std::size_t> step;
    torch::autograd::Edge edge;  // valid if it leads to an older step
    std::uint32_t input_nr = 0;
  };
  struct Step {
    std::weak_ptr<torch::autograd::Node> node;
    std::vector<Target> targets;  // of its next edges, in their order
  };

  void record_steps();
  Target target_of(const torch::autograd::Edge& edge);
  void list_exits();
  void list_exit(const Target& target, std::vector<std::size_t>& to_visit);
  std::vector<std::shared_ptr<torch::autograd::Node>> put_ends_in_place_of_exits();

  const std::uint64_t begin_;
  torch::autograd::edge_list roots_;
  std::vector<Target> targets_of_roots_;
  std::vector<Step> steps_;
  std::unordered_map<const torch::autograd::Node*, std::size_t> step_of_;
  torch::autograd::edge_list exits_;
};

}  // namespace rehearse::parallel
