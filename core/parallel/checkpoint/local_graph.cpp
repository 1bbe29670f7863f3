// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/checkpoint/local_graph.h"

#include <algorithm>
#include <utility>

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/tensor.h>
#include <torch/csrc/autograd/generated/Functions.h>
#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/libtorch/nodes.h>

namespace rehearse::parallel {
namespace {

namespace autograd = torch::autograd;

// Makes a node that receives the gradient for `exit` instead of the node outside of the graph, so hooks of the outside
// node do not run. The engine returns that gradient.
libtorch::NodePtr make_end(const autograd::Edge& exit) {
  const auto& form = exit.function->input_metadata(exit.input_nr);
  auto end = libtorch::make_node<autograd::Identity>();
  end->add_input_metadata(form.options(), form.shape_as_dim_vector(), form.is_tensor_subclass(),
                          form.is_nested_tensor(), form.grad_dtype());
  return end;
}

// After an in-place change of a view, the base's node is a CopySlices, which wraps the node of the change as `fn`.
// LibTorch expects both to have the same next edges, except for the first one.
void keep_alike(autograd::Node& step) {
  const auto* const slices = dynamic_cast<autograd::CopySlices*>(&step);
  if (slices == nullptr || !slices->fn) return;
  std::copy(step.next_edges().begin() + 1, step.next_edges().end(), slices->fn->next_edges().begin() + 1);
}

}  // namespace

std::uint64_t LocalGraph::now() { return at::sequence_number::peek(); }

LocalGraph::LocalGraph(const std::vector<at::Tensor>& results, std::uint64_t begin) : begin_(begin) {
  for (const at::Tensor& result : results) roots_.push_back(autograd::impl::gradient_edge(result));
  record_steps();
  list_exits();
}

void LocalGraph::record_steps() {
  for (const autograd::Edge& root : roots_) targets_of_roots_.push_back(target_of(root));
  for (std::size_t i = 0; i < steps_.size(); ++i) {  // target_of() adds the steps that it finds
    std::vector<Target> targets;
    for (const autograd::Edge& edge : steps_[i].node.lock()->next_edges()) {
      targets.push_back(edge.is_valid() ? target_of(edge) : Target());
    }
    steps_[i].targets = std::move(targets);
  }
}

LocalGraph::Target LocalGraph::target_of(const autograd::Edge& edge) {
  const autograd::Node& node = *edge.function;
  // AccumulateGrad nodes have the largest sequence number of all, although their leaves are older.
  const bool is_new = node.sequence_nr() >= begin_ && dynamic_cast<const autograd::AccumulateGrad*>(&node) == nullptr;
  if (!is_new) return {std::nullopt, edge, edge.input_nr};
  const auto [found, is_first] = step_of_.try_emplace(&node, steps_.size());
  if (is_first) steps_.push_back({libtorch::WeakNodePtr(edge.function), {}});
  return {found->second, {}, edge.input_nr};
}

// Walks depth-first and visits the last target first. This order depends on the graph alone, so the first run of the
// code and its repetition list their exits in the same order.
void LocalGraph::list_exits() {
  exits_.clear();
  std::vector<std::size_t> to_visit;
  std::vector<bool> seen(steps_.size());
  for (const Target& target : targets_of_roots_) list_exit(target, to_visit);
  while (!to_visit.empty()) {
    const std::size_t step = to_visit.back();
    to_visit.pop_back();
    if (seen[step]) continue;
    seen[step] = true;
    for (const Target& target : steps_[step].targets) list_exit(target, to_visit);
  }
}

void LocalGraph::list_exit(const Target& target, std::vector<std::size_t>& to_visit) {
  if (target.step) return to_visit.push_back(*target.step);
  if (!target.edge.is_valid() || std::find(exits_.begin(), exits_.end(), target.edge) != exits_.end()) return;
  exits_.push_back(target.edge);
}

libtorch::NodePtr LocalGraph::find_kept(const std::function<bool(const autograd::Edge&)>& is_input) const {
  const auto leads_inside = [&](const Target& target) { return target.step || is_input(target.edge); };
  for (const Step& step : steps_) {
    auto node = step.node.lock();
    if (node == nullptr) continue;
    const bool is_view = dynamic_cast<const autograd::generated::AsStridedBackward0*>(node.get()) != nullptr;
    if (!is_view || std::any_of(step.targets.begin(), step.targets.end(), leads_inside)) return node;
  }
  return nullptr;
}

void LocalGraph::leave_out_kept() {
  const auto leave_out = [&](std::vector<Target>& targets) {
    for (Target& target : targets) {
      if (!target.step) continue;
      if (auto kept = steps_[*target.step].node.lock()) target = {std::nullopt, {kept, target.input_nr}, 0};
    }
  };
  leave_out(targets_of_roots_);
  for (Step& step : steps_) leave_out(step.targets);
  list_exits();
}

// Redirects every edge that leaves the graph to a new node. Returns these nodes, one for each exit.
std::vector<libtorch::NodePtr> LocalGraph::put_ends_in_place_of_exits() {
  std::vector<libtorch::NodePtr> ends;
  for (const autograd::Edge& exit : exits_) ends.push_back(make_end(exit));
  const auto redirect = [&](autograd::Edge& edge, const Target& target) {
    if (target.step || !target.edge.is_valid()) return;
    const auto exit = std::find(exits_.begin(), exits_.end(), target.edge);
    edge = autograd::Edge(ends[static_cast<std::size_t>(exit - exits_.begin())], 0);
  };
  for (std::size_t i = 0; i < roots_.size(); ++i) redirect(roots_[i], targets_of_roots_[i]);
  for (const Step& step : steps_) {
    const auto node = step.node.lock();
    for (std::size_t i = 0; i < step.targets.size(); ++i) redirect(node->next_edges()[i], step.targets[i]);
    keep_alike(*node);
  }
  return ends;
}

autograd::variable_list LocalGraph::run_backward(autograd::variable_list gradients, const std::vector<bool>& wanted) {
  REHEARSE_CHECK(gradients.size() == roots_.size() && wanted.size() == exits_.size(), gradients.size(), wanted.size());
  const auto nodes_of_ends = put_ends_in_place_of_exits();
  autograd::edge_list roots, ends;
  autograd::variable_list defined;
  for (std::size_t i = 0; i < roots_.size(); ++i) {
    if (!gradients[i].defined()) continue;
    roots.push_back(std::move(roots_[i]));
    defined.push_back(std::move(gradients[i]));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) ends.emplace_back(nodes_of_ends[i], 0);
  }
  autograd::variable_list of_exits(exits_.size());
  if (roots.empty() || ends.empty()) return of_exits;
  auto found = autograd::Engine::get_default_engine().execute(roots, defined, false, false, false, ends);
  auto next = found.begin();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) of_exits[i] = std::move(*next++);
  }
  return of_exits;
}

}  // namespace rehearse::parallel
