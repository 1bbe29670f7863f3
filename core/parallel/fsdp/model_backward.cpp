// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/nn/module.h>

#include "parallel/fsdp/backward_graph.h"
#include "parallel/fsdp/sharded_model.h"
#include "parallel/fsdp/unit_plan.h"

namespace rehearse::parallel {

namespace autograd = torch::autograd;

// If a backward runs inside another backward, as a checkpoint's does, it counts as a part of the outer backward.
void ShardedModel::enter_backward() {
  if (!is_in_backward()) return;
  require_usable("backward()");
  if (backward_) return;
  const auto runs = std::make_shared<int>(autograd::get_current_graph_task_id());
  const auto none = std::vector<std::size_t>(units_.size(), 0);
  const auto no = std::vector<bool>(units_.size(), false);
  backward_ = Backward{runs, expected_gradients(units_), none, no, no};
  autograd::Engine::get_default_engine().queue_callback([model = weak_from_this(), runs] {
    if (const auto held = model.lock()) held->end_backward();
  });
}

// The backward has reached an output of a forward. One backward may go through several forwards.
void ShardedModel::enter_backward_of(const Versions& forward) {
  enter_backward();
  if (!backward_) return;
  backward_->knows_forward = true;
  backward_->current = kNone;  // the next use of a unit must check for stale values
  shard_watch_.at_backward(&forward);
  for (std::size_t i = 0; i < units_.size(); ++i) {
    if (forward[i] && forward[i] != units_[i].content_version()) backward_->stale[i] = true;
  }
}

// Call it when a backward comes to the code of a unit. Frees units that the backward has left. If `is_used`, launches
// the unit's own all-gather. Then launches the all-gather of the unit whose code should come next.
void ShardedModel::follow_backward(std::size_t unit, bool is_used) {
  if (backward_->current == unit) return;
  for (std::size_t i = 0; i < units_.size(); ++i) {
    // If the backward makes gradients of a unit, after_gradient() frees the unit when all of them have arrived.
    const bool is_over = backward_->visited[i] && backward_->expected[i] == 0;
    if (is_over && !units_[i].path().empty() && is_freed_by(i, unit)) units_[i].free();
  }
  backward_->current = unit;
  backward_->visited[unit] = true;
  if (is_used) start_gather(units_[unit], units_);
  const auto found = std::find(to_visit_.rbegin(), to_visit_.rend(), unit);
  if (found == to_visit_.rend()) return;
  to_visit_.erase(found.base() - 1, to_visit_.end());
  if (!to_visit_.empty()) start_gather(units_[to_visit_.back()], units_);
}

void ShardedModel::use_in_backward(std::size_t unit) {
  enter_backward();
  auto& used = units_[unit];
  if (backward_->current == unit && used.is_whole()) return;
  const auto& last = (*versions_)[unit];
  const bool is_stale = backward_->knows_forward ? backward_->stale[unit] : last && last != used.content_version();
  TORCH_CHECK(!is_stale, "FSDP: the shards of ", used.text(),
              " were changed between a forward and its backward, which needs the values that the forward used. Make "
              "the optimizer's step after backward()");
  follow_backward(unit, true);
  make_whole(used, units_);
}

void ShardedModel::before_gradient(std::size_t unit, std::size_t parameter) {
  enter_backward();
  units_[unit].parameters()[parameter].clear_mark();
}

void ShardedModel::after_gradient(std::size_t unit, std::size_t parameter) {
  enter_backward();
  const auto& own = units_[unit].parameters()[parameter];
  TORCH_CHECK(!own.gradient().defined() || !own.gradient().requires_grad(), "FSDP: backward() with create_graph: the ",
              "gradient of parameter \"", own.name(), "\" of ", units_[unit].text(),
              " has a history, which the reduce-scatter does not keep. Use torch::autograd::grad() of inputs");
  follow_backward(unit, false);
  if (++backward_->arrived[unit] != backward_->expected[unit]) return;
  if (backward_reduces_ && units_[unit].has_gradients()) reduce(unit);
  units_[unit].free();
}

// Only one reduce-scatter is in flight at a time, so one buffer is enough.
void ShardedModel::reduce(std::size_t unit) {
  finish_reduce();
  start_reduce(units_[unit], units_);
  reducing_ = unit;
}

void ShardedModel::finish_reduce() {
  if (reducing_ != kNone) units_[std::exchange(reducing_, kNone)].finish_reduce();
}

void ShardedModel::end_backward() {
  const auto& arrived = backward_->arrived;
  const bool made_gradients = std::ranges::any_of(arrived, [](std::size_t each) { return each > 0; });
  for (std::size_t i = 0; i < units_.size(); ++i) {
    // These are gradients of earlier backwards inside no_sync().
    if (made_gradients && backward_reduces_ && units_[i].has_gradients()) reduce(i);
    if (!backward_reduces_) units_[i].keep_gradients();
  }
  finish_reduce();
  for (auto& unit : units_) unit.free();
  to_visit_.clear();
  backward_.reset();
}

void ShardedModel::zero_grad() {
  TORCH_CHECK(depth_ == 0 && !is_in_backward(), "FSDP: zero_grad() is called inside of ",
              depth_ > 0 ? "forward()" : "backward()", ". Call it before or after the two");
  if (std::exchange(backward_, std::nullopt)) {  // a backward that has failed
    for (auto& unit : units_) unit.abandon();
    reducing_ = kNone;
    to_visit_.clear();
  }
  for (auto& each : module_->parameters()) each.mutable_grad().reset();  // includes ignored parameters
  for (auto& unit : units_) {
    for (auto& each : unit.parameters()) {
      if (each.is_trained()) each.take_gradient();
      each.shard().mutable_grad().reset();
    }
  }
}

}  // namespace rehearse::parallel
