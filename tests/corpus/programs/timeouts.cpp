// SPDX-License-Identifier: BSD-3-Clause
// Ranks that are late, stuck, or destroy groups in another order.
#include <ATen/ATen.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "corpus/entry.h"

namespace corpus {
namespace {

using namespace std::chrono_literals;

// A rank that aborts a communicator waits for its peers. The order of the aborts is up to the rank's garbage collector.
void destroy(const rehearse::Group& group) {
  group.barrier()->wait();  // <- B120
}

void destroys_groups_in_own_order(RankContext& ctx, bool corrected) {
  auto first = ctx.new_group({0, 1}, "tensor_parallel"), second = ctx.new_group({0, 1}, "data_parallel");
  if (ctx.rank() == 1 && !corrected) std::swap(first, second);
  destroy(first);
  destroy(second);
}

// A process is stuck in a step, but its heartbeat goes on.
void stands_still_and_beats(RankContext& ctx, bool corrected) {
  const std::jthread heartbeat([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      ctx.store()->add("heartbeats", 1);
      sleep(10);
    }
  });
  for (int step = 0; step < 6; ++step) {
    if (step == 4 && ctx.rank() == 1 && !corrected) sleep(100'000);  // <- B123
    ctx.group().allreduce(at::ones({4}))->wait();
  }
}

// One node has compiled kernels in its cache; the other compiles for a quarter of an hour.
void compiles_from_cold(RankContext& ctx, bool corrected) {
  if (corrected) ctx.group().extend_timeout_once(30min);
  ctx.compute(ctx.rank() == 0 ? 5s : 900s);  // <- B133
  if (corrected) ctx.group().barrier()->wait();
  ctx.group().allreduce(at::ones({4}))->wait();
}

// Rank 0's save takes longer than the others' timeout.
void saves_for_long(RankContext& ctx, bool corrected) {
  ctx.group().allreduce(at::ones({4}))->wait();
  if (corrected) ctx.group().extend_timeout_once(15min);
  if (ctx.rank() == 0) ctx.compute(700s);  // <- B134
  ctx.group().allreduce(at::ones({4}))->wait();
}

}  // namespace

Entries timeouts() {
  return {
      {"B120",
       destroys_groups_in_own_order,
       {.ranks = 2},
       Verdict::deadlock,
       {0, 1},
       "ranks 0 -> 1 -> 0 wait for each other: rank 0 in barrier #1 on group \"tensor_parallel\", rank 1 in barrier #1 "
       "on group \"data_parallel\""},
      {"B123",
       stands_still_and_beats,
       {.ranks = 4},
       Verdict::timeout,
       {1},
       "rank 1 was still in a sleep at {} in corpus::stands_still_and_beats; ranks 0,2-3 waited for it in allreduce #5 "
       "on group \"world\" until the timeout at 1800 s; rank 1 never called allreduce #5 on group \"world\""},
      {"B133",
       compiles_from_cold,
       {.ranks = 2, .timeout = 600s},
       Verdict::timeout,
       {1},
       "rank 1 was still in a computation at {} in corpus::compiles_from_cold; rank 0 waited for it in allreduce #1 on "
       "group \"world\" until the timeout at 605 s; rank 1 never called allreduce #1 on group \"world\""},
      {"B134",
       saves_for_long,
       {.ranks = 4, .timeout = 600s},
       Verdict::timeout,
       {0},
       "rank 0 was still in a computation at {} in corpus::saves_for_long; ranks 1-3 waited for it in allreduce #2 on "
       "group \"world\" until the timeout at 600 s; rank 0 never called allreduce #2 on group \"world\""},
  };
}

}  // namespace corpus
