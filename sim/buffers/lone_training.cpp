// SPDX-License-Identifier: BSD-3-Clause
#include "lone_training.h"

#include <algorithm>
#include <utility>

#include <dlfcn.h>

#include <fmt/format.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/operators/lone_code.h>

namespace rehearse::sim {
namespace {

constexpr std::int64_t kFew = 8;
// A call with so few numbers carries a loss, a count or a time.
constexpr std::int64_t kOfMetrics = 2;

std::int64_t elements_with_gradients(const torch::optim::Optimizer& optimizer) {
  std::int64_t elements = 0;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) elements += parameter.grad().defined() ? parameter.numel() : 0;
  }
  return elements;
}

// `name`: the mangled name of LibTorch's function, which ours replaces.
template <class Optimizer>
at::Tensor noted_step(Optimizer& optimizer, torch::optim::Optimizer::LossClosure closure, const char* name) {
  if (exec::this_rank::is_fiber()) LoneTraining::note_step(elements_with_gradients(optimizer));
  static void* const of_libtorch = ::dlsym(RTLD_NEXT, name);
  using Step = at::Tensor (*)(Optimizer*, torch::optim::Optimizer::LossClosure);
  return reinterpret_cast<Step>(of_libtorch)(&optimizer, std::move(closure));
}

}  // namespace

void LoneTraining::begin(WatchedCall& call, const std::vector<SharedBytes>&) {
  if (call.title.group->ranks.size() < 2) return;
  auto& rank = ranks_[static_cast<std::size_t>(call.rank)];
  std::int64_t largest = 0, taken = 0;
  for (const auto& buffer : call.buffers) {
    largest = std::max(largest, buffer.numel);
    if (buffer.reads()) taken += buffer.numel;  // calls that are coalesced count together
  }
  const auto elements = std::max(largest, taken);
  rank.largest_since = std::max(rank.largest_since, elements);
  rank.sum_since += elements;
}

void LoneTraining::OfRank::settle() {
  largest = std::max(largest, std::exchange(largest_since, 0));
  sum = std::max(sum, std::exchange(sum_since, 0));
}

void LoneTraining::note_step(std::int64_t parameters) {
  auto* const training = exec::WorldLocal<LoneTraining>::find();
  if (training != nullptr && !operators::in_lone_code()) training->step(exec::this_rank::rank(), parameters);
}

void LoneTraining::step(int rank, std::int64_t parameters) {
  auto& of = ranks_[static_cast<std::size_t>(rank)];
  if (of.steps++ == 0) of.largest_since = of.sum_since = 0;  // calls that make the ranks equal
  of.settle();
  of.parameters = std::max(of.parameters, parameters);
}

bool LoneTraining::is_lone(OfRank rank) {
  rank.settle();
  return rank.steps > 1 && rank.parameters > kFew && rank.largest <= kOfMetrics && rank.sum < rank.parameters;
}

void LoneTraining::leave_to(checks::RankRemarks& remarks) const {
  if (std::ranges::count_if(ranks_, is_lone) < 2) return;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const auto& of = ranks_[i];
    if (!is_lone(of) || remarks.has_checked(static_cast<int>(i))) continue;
    remarks.remark(
        static_cast<int>(i),
        fmt::format("stepped an optimizer of {} parameters {} times, and no call after a step carried more than {} "
                    "numbers: no call of a group reduced the gradients, which is right only if ranks train alone or "
                    "exchange gradients in another way",
                    of.parameters, of.steps, kOfMetrics));
  }
}

}  // namespace rehearse::sim

// These definitions replace LibTorch's functions, because the executable's definition takes precedence over a
// library's. LibTorch's optimizers have no hook.
namespace torch::optim {

using rehearse::sim::noted_step;

at::Tensor SGD::step(LossClosure closure) {
  return noted_step(*this, std::move(closure), "_ZN5torch5optim3SGD4stepESt8functionIFN2at6TensorEvEE");
}
at::Tensor Adam::step(LossClosure closure) {
  return noted_step(*this, std::move(closure), "_ZN5torch5optim4Adam4stepESt8functionIFN2at6TensorEvEE");
}
at::Tensor AdamW::step(LossClosure closure) {
  return noted_step(*this, std::move(closure), "_ZN5torch5optim5AdamW4stepESt8functionIFN2at6TensorEvEE");
}
at::Tensor Adagrad::step(LossClosure closure) {
  return noted_step(*this, std::move(closure), "_ZN5torch5optim7Adagrad4stepESt8functionIFN2at6TensorEvEE");
}
at::Tensor RMSprop::step(LossClosure closure) {
  return noted_step(*this, std::move(closure), "_ZN5torch5optim7RMSprop4stepESt8functionIFN2at6TensorEvEE");
}
at::Tensor LBFGS::step(LossClosure closure) {
  return noted_step(*this, std::move(closure), "_ZN5torch5optim5LBFGS4stepESt8functionIFN2at6TensorEvEE");
}

}  // namespace torch::optim
