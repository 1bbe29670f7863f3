// SPDX-License-Identifier: BSD-3-Clause
// The program writes or reads memory while a call without a wait still uses it.
#include <ATen/ATen.h>

#include <array>
#include <thread>

#include "corpus/entry.h"
#include "corpus/tensors.h"

namespace corpus {
namespace {

// Two groups reduce the gradients of three layers in two buffers. Before the program reuses the first buffer, it waits
// for the reduction of the second one.
void shares_two_buffers_by_layers(RankContext& ctx, bool corrected) {
  const std::array buffers{at::zeros({4}), at::zeros({4})};
  const std::array parts{at::zeros({2}), at::zeros({2})};
  const std::array groups{ctx.group(), ctx.new_group({0, 1}, "experts")};
  std::vector<rehearse::Work> works;
  for (std::size_t layer = 0; layer < 3; ++layer) {
    if (layer == 2) works[corrected ? 0 : 1]->wait();
    buffers[layer % 2].fill_(static_cast<double>(layer));  // <- B023
    works.push_back(groups[layer % 2].reduce_scatter(parts[layer % 2], buffers[layer % 2].chunk(2)));
  }
  for (const auto& work : works) work->wait();
}

// A checkpoint gathers the weights asynchronously, and the optimizer's step does not wait for it.
void steps_while_it_saves(RankContext& ctx, bool corrected) {
  const auto weights = at::ones({4});
  const auto saved = room_for(weights, ctx.size());
  const auto saving = ctx.group().allgather(saved, weights);
  if (corrected) saving->wait();
  weights.add_(1);  // <- B026
  saving->wait();
}

// If all parameters are used, no rank waits for the reduction of the usage map. The next step clears this map.
void clears_a_map_that_is_reduced(RankContext& ctx, bool corrected) {
  const auto used = at::ones({4}, at::kInt);
  const auto work = ctx.group().allreduce(used);
  if (corrected) work->wait();
  used.zero_();  // <- B027
  ctx.group().barrier()->wait();
}

// One path casts the result of a gather without a wait.
void casts_without_a_wait(RankContext& ctx, bool corrected) {
  const auto shard = at::ones({2}, at::kBFloat16);
  const auto gathered = room_for(shard, ctx.size());
  const auto work = ctx.group().allgather(gathered, shard);
  if (corrected) work->wait();
  const auto sum = gathered[1].to(at::kFloat).sum();  // <- B029
  work->wait();
}

// Buckets use two buffers in turn. The program refills a buffer two buckets later, without waiting for its reduction.
void refills_a_double_buffer(RankContext& ctx, bool corrected) {
  const std::array buffers{at::zeros({4}), at::zeros({4})};
  std::array<rehearse::Work, 2> reductions;
  for (std::size_t bucket = 0; bucket < 4; ++bucket) {
    const auto& buffer = buffers[bucket % 2];
    auto& reduction = reductions[bucket % 2];
    if (corrected && reduction) reduction->wait();
    buffer.copy_(at::full({4}, static_cast<double>(bucket)));  // <- B031
    reduction = ctx.group().allreduce(buffer);
  }
  for (const auto& reduction : reductions) reduction->wait();
}

// A module is called twice, so its gradient has two parts. The program adds the second part during the all-reduce.
void reduces_between_two_uses(RankContext& ctx, bool corrected) {
  const auto gradient = at::zeros({4});
  rehearse::Work reduction;
  for (int use = 0; use < 2; ++use) {
    gradient.add_(at::ones({4}));  // <- B139
    if (use == 0 && !corrected) reduction = ctx.group().allreduce(gradient);
  }
  if (corrected) reduction = ctx.group().allreduce(gradient);
  reduction->wait();
}

}  // namespace

Entries buffers() {
  return {
      {"B023",
       shares_two_buffers_by_layers,
       {.ranks = 2, .check_buffers = true},
       Verdict::check_failed,
       {},
       "rank *: aten::fill_ at {} in corpus::shares_two_buffers_by_layers writes an input of reduce_scatter #1 on "
       "group \"world\" (called at buffers.cpp:* in corpus::shares_two_buffers_by_layers), which rank * has not waited "
       "for"},
      {"B026",
       steps_while_it_saves,
       {.ranks = 2, .check_buffers = true},
       Verdict::check_failed,
       {},
       "rank *: aten::add_ at {} in corpus::steps_while_it_saves writes the input of allgather #1 on group "
       "\"world\" (called at buffers.cpp:* in corpus::steps_while_it_saves), which rank * has not waited for"},
      {"B027",
       clears_a_map_that_is_reduced,
       {.ranks = 2, .check_buffers = true},
       Verdict::check_failed,
       {},
       "rank *: aten::zero_ at {} in corpus::clears_a_map_that_is_reduced writes the tensor of allreduce #1 "
       "on group \"world\" (called at buffers.cpp:* in corpus::clears_a_map_that_is_reduced), which rank * has not "
       "waited for"},
      {"B029",
       casts_without_a_wait,
       {.ranks = 2, .check_buffers = true},
       Verdict::check_failed,
       {},
       "rank *: aten::_to_copy at {} in corpus::casts_without_a_wait reads an output of allgather #1 on "
       "group \"world\" (called at buffers.cpp:* in corpus::casts_without_a_wait), which rank * has not waited for"},
      {"B031",
       refills_a_double_buffer,
       {.ranks = 2, .check_buffers = true},
       Verdict::check_failed,
       {},
       "rank *: aten::copy_ at {} in corpus::refills_a_double_buffer writes the tensor of allreduce #1 on "
       "group \"world\" (called at buffers.cpp:* in corpus::refills_a_double_buffer), which rank * has not waited for"},
      {"B139",
       reduces_between_two_uses,
       {.ranks = 2, .check_buffers = true},
       Verdict::check_failed,
       {},
       "rank *: aten::add_ at {} in corpus::reduces_between_two_uses writes the tensor of allreduce #1 on "
       "group \"world\" (called at buffers.cpp:* in corpus::reduces_between_two_uses), which rank * has not waited "
       "for"},
  };
}

}  // namespace corpus
