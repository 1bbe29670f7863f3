// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

namespace rehearse::parallel {

// What autograd has recorded for some results since a moment: the steps that lead from them to tensors that were there
// before. Those of other threads of the rank count as having been there.
class LocalGraph {
 public:
  // The moment from which on steps are new, for this fiber.
  static std::uint64_t now();

  // `results`: those that require grad.
  LocalGraph(const std::vector<at::Tensor>& results, std::uint64_t begin);

  // Where gradients leave it: the edges to steps that were there, in the order in which a walk from the results comes
  // to them, each once.
  const torch::autograd::edge_list& exits() const noexcept { return exits_; }

  // Lets go of it. Gives its steps: whoever keeps a tensor with this history keeps some of them.
  std::vector<std::weak_ptr<torch::autograd::Node>> release();

  // Runs backward through it, and gives the gradient of each exit (undefined: none has come, or `wanted` does not have
  // it). Nothing outside of the graph runs, and neither do its hooks. `gradients`: of the results. Once only: what the
  // steps have saved is gone afterwards.
  torch::autograd::variable_list run_backward(torch::autograd::variable_list gradients,
                                              const std::vector<bool>& wanted);

 private:
  bool is_local(const torch::autograd::Node& step) const;
  std::size_t find_or_add(const torch::autograd::Edge& exit);
  void visit(torch::autograd::Edge& edge);
  void walk();

  const std::uint64_t begin_;
  torch::autograd::edge_list roots_;
  torch::autograd::edge_list exits_;
  std::vector<std::shared_ptr<torch::autograd::Node>> ends_;  // by exit: what stands in its place
  std::vector<std::weak_ptr<torch::autograd::Node>> steps_;
  std::vector<torch::autograd::Node*> to_visit_;
};

}  // namespace rehearse::parallel
