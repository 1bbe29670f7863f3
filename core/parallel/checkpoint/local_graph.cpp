// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/checkpoint/local_graph.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/exec/check.h>

namespace rehearse::parallel {
namespace {

namespace autograd = torch::autograd;

// Takes the gradient for `exit` in its place: the engine keeps it, and calls no hook.
std::shared_ptr<autograd::Node> make_end(const autograd::Edge& exit) {
  const auto& form = exit.function->input_metadata(exit.input_nr);
  auto end = std::make_shared<autograd::Identity>();
  end->add_input_metadata(form.options(), form.shape_as_dim_vector(), form.is_tensor_subclass(),
                          form.is_nested_tensor(), form.grad_dtype());
  return end;
}

// A view that was changed in place: the step of its base holds the change, which has the same edges but for the first.
void keep_alike(autograd::Node& step) {
  const auto* const slices = dynamic_cast<autograd::CopySlices*>(&step);
  if (slices == nullptr || !slices->fn) return;
  std::copy(step.next_edges().begin() + 1, step.next_edges().end(), slices->fn->next_edges().begin() + 1);
}

}  // namespace

std::uint64_t LocalGraph::now() { return at::sequence_number::peek(); }

LocalGraph::LocalGraph(const std::vector<at::Tensor>& results, std::uint64_t begin) : begin_(begin) {
  for (const at::Tensor& result : results) {
    roots_.push_back(autograd::impl::gradient_edge(result));
    visit(roots_.back());
  }
  walk();
}

void LocalGraph::walk() {
  std::unordered_set<autograd::Node*> seen;
  while (!to_visit_.empty()) {
    autograd::Node* const step = to_visit_.back();
    to_visit_.pop_back();
    if (!seen.insert(step).second) continue;
    steps_.push_back(step->getptr());
    for (autograd::Edge& edge : step->next_edges()) {
      if (edge.is_valid()) visit(edge);
    }
    keep_alike(*step);
  }
}

std::vector<std::weak_ptr<autograd::Node>> LocalGraph::release() {
  roots_.clear();
  return std::move(steps_);
}

// The gradients of a leaf are added up by a step that has no number of its own.
bool LocalGraph::is_local(const autograd::Node& step) const {
  return step.sequence_nr() >= begin_ && dynamic_cast<const autograd::AccumulateGrad*>(&step) == nullptr;
}

// An edge that leaves the graph leads to an end of its own from now on.
void LocalGraph::visit(autograd::Edge& edge) {
  if (is_local(*edge.function)) {
    to_visit_.push_back(edge.function.get());
  } else {
    edge = autograd::Edge(ends_[find_or_add(edge)], 0);
  }
}

std::size_t LocalGraph::find_or_add(const autograd::Edge& exit) {
  const auto found = std::find(exits_.begin(), exits_.end(), exit);
  if (found != exits_.end()) return static_cast<std::size_t>(found - exits_.begin());
  exits_.push_back(exit);
  ends_.push_back(make_end(exit));
  return exits_.size() - 1;
}

autograd::variable_list LocalGraph::run_backward(autograd::variable_list gradients, const std::vector<bool>& wanted) {
  REHEARSE_CHECK(gradients.size() == roots_.size() && wanted.size() == exits_.size(), gradients.size(), wanted.size());
  autograd::edge_list roots, ends;
  autograd::variable_list defined;
  for (std::size_t i = 0; i < roots_.size(); ++i) {
    if (!gradients[i].defined()) continue;
    roots.push_back(std::move(roots_[i]));
    defined.push_back(std::move(gradients[i]));
  }
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (wanted[i]) ends.emplace_back(ends_[i], 0);
  }
  autograd::variable_list of_exits(exits_.size());
  if (roots.empty() || ends.empty()) return of_exits;
  auto found = autograd::Engine::get_default_engine().execute(roots, defined, false, false, false, ends);
  auto next = found.begin();
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (wanted[i]) of_exits[i] = std::move(*next++);
  }
  return of_exits;
}

}  // namespace rehearse::parallel
