// SPDX-License-Identifier: BSD-3-Clause
// Ranks that die, or leave, while others wait for them.
#include <ATen/ATen.h>

#include <stdexcept>

#include <rehearse/comm/errors.h>

#include "corpus/entry.h"
#include "corpus/tensors.h"

namespace corpus {
namespace {

// A peer on the same host is killed. The other ranks learn this only if they check for it.
void reduces_with_a_dead_peer(RankContext& ctx, bool corrected) {
  for (int step = 0; step < 4; ++step) {
    try {
      ctx.group().allreduce(at::ones({8}))->wait();  // <- B066
    } catch (const rehearse::CommError&) {
      if (!corrected) throw;
      return;  // training goes on from the checkpoint
    }
  }
}

// A worker is killed, and the back end does not report the failure to the agent.
void trains_with_a_dead_worker(RankContext& ctx, bool corrected) {
  for (int step = 0; step < 8; ++step) {
    try {
      ctx.group().broadcast(at::ones({2}))->wait();
      ctx.group().allreduce(at::ones({8}))->wait();  // <- B068
    } catch (const rehearse::CommError&) {
      if (!corrected) throw;
      return;
    }
  }
}

int sample(int batch, int samples) {
  if (batch >= samples) throw std::out_of_range("index 41 is out of range");
  return batch;
}

// The program mistakes an exception of the data pipeline for the end of the epoch.
void takes_an_error_for_the_end(RankContext& ctx, bool corrected) {
  const int samples = ctx.rank() == 0 && !corrected ? 41 : 44;
  const auto metrics = at::ones({2});
  try {
    for (int batch = 0; batch < 44; ++batch) ctx.group().allreduce(at::full({4}, sample(batch, samples)))->wait();
  } catch (const std::out_of_range&) {
  }
  ctx.group().allgather(room_for(metrics, ctx.size()), metrics)->wait();  // <- B067
}

// The job plans to end ("save and exit(0)"), but only rank 0 knows of the plan.
void leaves_as_planned(RankContext& ctx, bool corrected) {
  for (int step = 0; step < 6; ++step) {
    const auto stop = at::full({1}, step == 4 && ctx.rank() == 0 ? 1 : 0);
    if (corrected) ctx.group().allreduce(stop, c10d::ReduceOp::MAX)->wait();
    if (stop.item<std::int64_t>() != 0) return;
    ctx.group().allreduce(at::ones({8}))->wait();  // <- B069
  }
}

// A node is lost and no rank starts again without it, so its peers stay in their collective until the timeout.
void goes_on_without_a_node(RankContext& ctx, bool corrected) {
  auto group = ctx.group();
  for (int step = 0; step < 6; ++step) {
    try {
      group.allreduce(at::ones({8}))->wait();  // <- B103
    } catch (const rehearse::TimeoutError& error) {
      if (!corrected) throw;
      group = group.shrink(error.ranks());
    }
  }
}

WorldOptions with_crash(int ranks, const char* fault) {
  WorldOptions options;
  options.ranks = ranks;
  options.faults = {rehearse::parse_fault(fault)};
  return options;
}

}  // namespace

Entries crashes() {
  return {
      {"B066",
       reduces_with_a_dead_peer,
       with_crash(2, "crash rank=1 at=allreduce#3"),
       Verdict::deadlock,
       {1},
       "allreduce #3 on group \"world\": rank 1 crashed and will never come",
       {},
       true,
       with_crash(2, "crash rank=1 at=allreduce#3 peers=disconnect")},
      {"B067",
       takes_an_error_for_the_end,
       {.ranks = 3},
       Verdict::mismatch,
       {0},
       "rank 0 called allgather(float32 3 x [2], cpu) while ranks 1-2 called allreduce(sum, int64[4], cpu) as #42 of "
       "group \"world\": op allgather, not allreduce, shape 3 x [2], not [4], dtype float32, not int64"},
      {"B068",
       trains_with_a_dead_worker,
       with_crash(4, "crash rank=2 at=allreduce#8"),
       Verdict::deadlock,
       {2},
       "allreduce #8 on group \"world\": rank 2 crashed and will never come",
       {},
       true,
       with_crash(4, "crash rank=2 at=allreduce#8 peers=disconnect")},
      {"B069",
       leaves_as_planned,
       {.ranks = 4},
       Verdict::deadlock,
       {0},
       "allreduce #5 on group \"world\": rank 0 has ended and will never come"},
      {"B103",
       goes_on_without_a_node,
       with_crash(3, "crash rank=1 at=allreduce#4"),
       Verdict::deadlock,
       {1},
       "allreduce #4 on group \"world\": rank 1 crashed and will never come"},
  };
}

}  // namespace corpus
