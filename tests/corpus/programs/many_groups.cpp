// SPDX-License-Identifier: BSD-3-Clause
// Several communicators at once. A rank with a few threads behaves like a device with a few queues: each thread runs
// its collectives one after the other, each to its end.
#include <ATen/ATen.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <thread>

#include "corpus/entry.h"

namespace corpus {
namespace {

using Queue = std::vector<rehearse::Group>;

void run_queue(const Queue& queue) {
  for (const auto& group : queue) group.allreduce(at::ones({4}))->wait();
}

// Four communicators of the same ranks, and two slots on each device. One device fills its slots in reverse order.
void fills_slots_from_the_other_end(RankContext& ctx, bool corrected) {
  Queue comms;
  for (const auto* const name : {"comm0", "comm1", "comm2", "comm3"}) comms.push_back(ctx.new_group({0, 1}, name));
  if (ctx.rank() == 1 && !corrected) std::reverse(comms.begin(), comms.end());
  const std::jthread slot([&] { run_queue({comms[1], comms[3]}); });
  comms[0].allreduce(at::ones({4}))->wait();  // <- B052
  comms[2].allreduce(at::ones({4}))->wait();
}

// Messages and collectives on separate communicators and streams. The device runs one kernel at a time.
void sends_beside_an_all_reduce(RankContext& ctx, bool corrected) {
  const auto p2p = ctx.new_group({0, 1}, "p2p"), data = ctx.new_group({0, 1}, "data");
  const auto block = at::ones({4});
  if (ctx.rank() == 0) {
    p2p.send(block, 1)->wait();  // <- B053
    data.allreduce(at::ones({4}))->wait();
    return;
  }
  if (corrected) p2p.recv(block, 0)->wait();
  data.allreduce(at::ones({4}))->wait();
  if (!corrected) p2p.recv(block, 0)->wait();
}

// Rank 0 copies a result, and so holds the device's lock until the stream is done. Rank 1 is still making a
// communicator, which must allocate, and so needs that lock.
void allocates_beside_a_collective(RankContext& ctx, bool corrected) {
  static std::mutex page_table;
  const auto allocate = [] {
    const std::lock_guard lock(page_table);  // <- B054
  };
  if (ctx.rank() == 1 && !corrected) ctx.store()->wait({"rank 0 copies"});
  if (ctx.rank() == 1) allocate();
  if (corrected) ctx.group().barrier()->wait();
  const auto launched = ctx.group().allreduce(at::ones({4}));
  if (ctx.rank() == 0) {
    const std::lock_guard copy(page_table);
    ctx.store()->set("rank 0 copies", "yes");
    launched->wait();
  }
  launched->wait();
}

// A 2 x 2 mesh. Each rank has one hardware queue for its two communicators, and fills it in an order of its own.
void shares_a_hardware_queue(RankContext& ctx, bool corrected) {
  const auto mine = [&](const char* axis, const std::vector<std::vector<int>>& groups) {
    rehearse::Group group;
    for (const auto& ranks : groups) {
      const auto made = ctx.new_group(ranks, axis + std::to_string(ranks.front()));
      if (made) group = made;
    }
    return group;
  };
  Queue queue{mine("dp", {{0, 2}, {1, 3}}), mine("tp", {{0, 1}, {2, 3}})};
  const bool swapped = ctx.rank() == 1 || ctx.rank() == 2;
  if (swapped && !corrected) std::swap(queue[0], queue[1]);
  for (const auto& group : queue) group.allreduce(at::ones({4}))->wait();  // <- B055
}

}  // namespace

Entries many_groups() {
  return {
      {"B052",
       fills_slots_from_the_other_end,
       {.ranks = 2},
       Verdict::deadlock,
       {0, 1},
       "ranks 0 -> 1 -> 0 wait for each other: rank 0 in allreduce #1 on group \"comm0\", rank 1 in allreduce #1 on "
       "group \"comm3\""},
      {"B053",
       sends_beside_an_all_reduce,
       {.ranks = 2},
       Verdict::deadlock,
       {0, 1},
       "ranks 0 -> 1 -> 0 wait for each other: rank 0 in send #1 to rank 1 on group \"p2p\", rank 1 in allreduce #1 on "
       "group \"data\""},
      {"B054",
       allocates_beside_a_collective,
       {.ranks = 2},
       Verdict::deadlock,
       {0, 1},
       "ranks 0 -> 1 -> 0 wait for each other: rank 0 in allreduce #1 on group \"world\", rank 1 in a mutex held by "
       "rank 0; ranks share this mutex only because a simulation runs them in one process: with a process for each "
       "rank, this deadlock does not occur"},
      {"B055",
       shares_a_hardware_queue,
       {.ranks = 4},
       Verdict::deadlock,
       {0, 1, 2, 3},
       "ranks 0 -> 2 -> 3 -> 1 -> 0 wait for each other: rank 0 in allreduce #1 on group \"dp0\", rank 2 in allreduce "
       "#1 on group \"tp2\", rank 3 in allreduce #1 on group \"dp1\", rank 1 in allreduce #1 on group \"tp0\""},
  };
}

}  // namespace corpus
