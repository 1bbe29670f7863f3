// SPDX-License-Identifier: BSD-3-Clause
// Collectives of objects: sizes first, then bytes.
#include <ATen/ATen.h>

#include <mutex>

#include <rehearse/comm/object_collectives.h>

#include "corpus/entry.h"
#include "corpus/tensors.h"

namespace corpus {
namespace {

// The sizes of texts meet the payload of another gather. Read as a size, this payload is more than a rank can allocate.
void gathers_texts_beside_metrics(RankContext& ctx, bool corrected) {
  const auto metric = at::full({1}, 0.25);
  if (ctx.rank() == 1 || corrected) ctx.group().allgather(room_for(metric, ctx.size()), metric)->wait();
  rehearse::comm::all_gather_object(ctx.group(), "some text");  // <- B125
  if (ctx.rank() != 1 && !corrected) ctx.group().allgather(room_for(metric, ctx.size()), metric)->wait();
}

// A rank that unpacks an object copies it to a device and waits for that device's work. Here a lock takes the place of
// the device. Rank 0 is further ahead, and holds the lock in its next collective.
void unpacks_onto_a_busy_device(RankContext& ctx, bool corrected) {
  static std::mutex device;
  const auto bytes = rehearse::comm::broadcast_object(ctx.group(), "a tensor on device 0");
  if (ctx.rank() == 1) {
    if (!corrected) ctx.store()->wait({"rank 0 is in its all-reduce"});
    const std::lock_guard unpacking(device);  // <- B126
  }
  if (corrected) ctx.group().barrier()->wait();
  std::unique_lock stream(device, std::defer_lock);
  if (ctx.rank() == 0) stream.lock();
  if (ctx.rank() == 0) ctx.store()->set("rank 0 is in its all-reduce", "yes");
  ctx.group().allreduce(at::ones({static_cast<std::int64_t>(bytes.size())}))->wait();
}

}  // namespace

Entries object_collectives() {
  return {
      {"B125",
       gathers_texts_beside_metrics,
       {.ranks = 3},
       Verdict::mismatch,
       {1},
       "rank 1 called allgather(float32 3 x [1], cpu) while ranks 0,2 called allgather(int64 3 x [1], cpu) as #1 of "
       "group \"world\": dtype float32, not int64"},
      {"B126",
       unpacks_onto_a_busy_device,
       {.ranks = 2},
       Verdict::deadlock,
       {0, 1},
       "ranks 0 -> 1 -> 0 wait for each other: rank 0 in allreduce #3 on group \"world\", rank 1 in a mutex held by "
       "rank 0; ranks share this mutex only because a simulation runs them in one process: with a process for each "
       "rank, this deadlock does not occur"},
  };
}

}  // namespace corpus
