// SPDX-License-Identifier: BSD-3-Clause
#include "wrong_programs.h"

#include <ATen/ops/ones.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace wrong_programs {

void oversleeps(RankContext& ctx) {
  auto loss = at::ones({1});
  if (ctx.rank() == 1) sleep(3600);
  ctx.group().allreduce(loss)->wait();
}

void sends_to_nobody(RankContext& ctx) {
  auto block = at::ones({4});
  if (ctx.rank() == 1) ctx.group().send(block, ctx.rank() + 1)->wait();
}

void waits_for_a_key_that_nobody_sets(RankContext& ctx) {
  ctx.group().barrier()->wait();
  if (ctx.rank() == 2) ctx.store()->get("weights_ready");
  ctx.group().barrier()->wait();
}

void waits_in_a_chain(RankContext& ctx) {
  auto block = at::ones({4});
  if (ctx.rank() == 0) ctx.store()->wait({"block_received"});
  if (ctx.rank() == 1) {
    ctx.group().recv(block, 2)->wait();
    ctx.store()->set("block_received", "yes");
  }
  if (ctx.rank() == 2) {
    std::mutex mutex;
    std::condition_variable loaded;
    std::unique_lock lock(mutex);
    loaded.wait(lock);
  }
  ctx.group().barrier()->wait();
}

void swaps_two_groups(RankContext& ctx) {
  auto first = ctx.new_group({0, 1}, "tensor_parallel");
  auto second = ctx.new_group({0, 1}, "data_parallel");
  if (ctx.rank() == 1) std::swap(first, second);
  auto gradient = at::ones({4});
  first.allreduce(gradient)->wait();
  second.allreduce(gradient)->wait();
}

void polls_for_a_key(RankContext& ctx) {
  while (ctx.rank() == 1 && !ctx.store()->check({"shard_written"})) {
  }
  ctx.group().barrier()->wait();
}

void polls_for_a_key_with_pauses(RankContext& ctx) {
  while (ctx.rank() == 1 && !ctx.store()->check({"shard_written"})) sleep(1);
  ctx.group().barrier()->wait();
}

void throws_three_lines(RankContext& ctx) {
  ctx.group().barrier()->wait();
  if (ctx.rank() == 1) throw std::runtime_error("cannot read shard 1\ncaused by: no such file: shards/1\nrun prepare.sh first");
  ctx.group().barrier()->wait();
}

void makes_a_call_too_many(RankContext& ctx) {
  auto loss = at::ones({1});
  ctx.group().allreduce(loss)->wait();
  if (ctx.rank() == 0) ctx.group().allreduce(loss)->wait();
}

void cleans_up_after_a_hang(RankContext& ctx) {
  struct Loader {
    std::mutex mutex;
    std::condition_variable told;
    bool stop = false;
    std::thread thread{[this] {
      std::unique_lock lock(mutex);
      told.wait(lock, [this] { return stop; });
    }};
    ~Loader() {
      {
        const std::lock_guard lock(mutex);
        stop = true;
      }
      told.notify_all();
      thread.join();
    }
  } loader;
  if (ctx.rank() == 0) return;
  ctx.group().barrier()->wait();
}

}  // namespace wrong_programs
