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
  if (ctx.rank() == 1)
    throw std::runtime_error("cannot read shard 1\ncaused by: no such file: shards/1\nrun prepare.sh first");
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

static void sum(RankContext& ctx, at::Tensor tensor) { ctx.group().allreduce(tensor)->wait(); }

void leaves_out_one_of_equal_calls(RankContext& ctx) {
  auto loss = at::ones({1}), accuracy = at::ones({1});
  for (int step = 0; step < 3; ++step) {
    sum(ctx, loss);
    if (ctx.rank() == 2 && step == 1) continue;
    sum(ctx, accuracy);
  }
}

void branches_on_the_rank(RankContext& ctx) {
  auto weights = at::ones({4});
  for (int step = 0; step < 3; ++step) {
    if (ctx.rank() == 1 && step == 2) return;
    if (ctx.rank() == 0) {
      ctx.group().broadcast(weights)->wait();
    } else {
      ctx.group().broadcast(weights)->wait();
    }
  }
}

void hides_a_timeout(RankContext& ctx) {
  if (ctx.rank() == 1) return;
  auto loss = at::ones({1});
  try {
    ctx.group().allreduce(loss)->wait();
  } catch (const std::exception&) {
    throw std::runtime_error("step 1 failed");
  }
}

void hides_a_timeout_of_the_store(RankContext& ctx) {
  if (ctx.rank() == 1) return;
  try {
    ctx.store()->get("weights_ready");
  } catch (const std::exception&) {
    throw std::runtime_error("cannot load");
  }
}

void locks_around_a_collective(RankContext& ctx) {
  static std::mutex mutex;
  auto loss = at::ones({1});
  if (ctx.rank() != 0) ctx.store()->wait({"locked"});
  const std::lock_guard lock(mutex);
  if (ctx.rank() == 0) ctx.store()->set("locked", "yes");
  ctx.group().allreduce(loss)->wait();
}

void locks_twice(RankContext& ctx) {
  std::mutex mutex;
  if (ctx.rank() == 1) {
    const std::lock_guard once(mutex);
    const std::lock_guard twice(mutex);
  }
  ctx.group().barrier()->wait();
}

void receives_from_the_wrong_rank(RankContext& ctx) {
  auto block = at::ones({4});
  if (ctx.rank() == 0) ctx.group().send(block, 1)->wait();
  if (ctx.rank() == 1) ctx.group().recv(block, 2)->wait();
  ctx.group().barrier()->wait();
}

void sets_a_key_too_late(RankContext& ctx) {
  if (ctx.rank() == 0) ctx.store()->get("weights_ready");
  sleep(3600);
  if (ctx.rank() == 1) ctx.store()->set("weights_ready", "yes");
}

void returns_early_beside_a_heartbeat(RankContext& ctx) {
  if (ctx.rank() == 0) return;
  std::thread heartbeat([] {
    for (;;) sleep(60);
  });
  heartbeat.detach();
  ctx.group().barrier()->wait();
}

void pauses_in_a_condition_variable(RankContext& ctx) {
  if (ctx.rank() == 1) {
    std::mutex mutex;
    std::condition_variable pause;
    std::unique_lock lock(mutex);
    pause.wait_for(lock, std::chrono::minutes(40));
  }
  ctx.group().barrier()->wait();
}

void swaps_two_groups_beside_a_watchdog(RankContext& ctx) {
  std::mutex mutex;
  std::condition_variable ended;
  bool over = false;
  std::jthread watchdog([&] {
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, std::chrono::seconds(10), [&] { return over; })) {
    }
  });
  const std::shared_ptr<void> end(nullptr, [&](void*) {
    over = true;
    ended.notify_one();
  });
  swaps_two_groups(ctx);
}

void polls_for_a_collective_with_pauses(RankContext& ctx) {
  if (ctx.rank() == 1) return;
  auto loss = at::ones({1});
  const auto work = ctx.group().allreduce(loss);
  while (!work->isCompleted()) usleep(10'000);
}

void waits_for_a_key_in_a_thread(RankContext& ctx) {
  if (ctx.rank() == 1) {
    std::thread loader([&] { ctx.store()->wait({"weights_ready"}); });
    loader.join();
  }
  ctx.group().barrier()->wait();
}

void receives_from_the_other_side(RankContext& ctx) {
  auto mine = at::ones({4});
  auto theirs = at::ones({4});
  const int last = ctx.size() - 1;
  c10::intrusive_ptr<c10d::Work> sent;
  if (ctx.rank() > 0) sent = ctx.group().send(mine, ctx.rank() - 1);
  if (ctx.rank() < last) ctx.group().recv(theirs, (ctx.rank() + last) % ctx.size())->wait();
  if (sent) sent->wait();
}

void sets_a_key_behind_a_barrier(RankContext& ctx) {
  if (ctx.rank() == 0) ctx.store()->wait({"weights_ready"});
  ctx.group().barrier()->wait();
  if (ctx.rank() == 1) ctx.store()->set("weights_ready", "yes");
}

void waits_around_a_store(RankContext& ctx) {
  auto block = at::ones({4});
  const auto pair = ctx.new_group({1, 2}, "pair");
  if (ctx.rank() == 0) {
    ctx.store()->wait({"block_wanted"});
    ctx.group().send(block, 1)->wait();
  }
  if (ctx.rank() == 1) ctx.group().recv(block, 0)->wait();
  if (ctx.rank() > 0) pair.allreduce(block)->wait();
  if (ctx.rank() == 2) ctx.store()->set("block_wanted", "yes");
}

void broadcasts_from_another_root(RankContext& ctx) {
  auto weights = at::ones({4});
  ctx.group().broadcast(weights, ctx.rank() == 2 ? 1 : 0)->wait();
}

void expects_more_than_is_sent(RankContext& ctx) {
  auto tokens = at::ones({4});
  auto routed = at::ones({ctx.rank() == 0 ? 5 : 4});
  const std::vector<std::int64_t> sends{2, 2}, receives{2, ctx.rank() == 0 ? 3 : 2};
  ctx.group().alltoall(routed, tokens, receives, sends)->wait();
}

void waits_in_two_groups_and_a_receive(RankContext& ctx) {
  const auto tensor_parallel = ctx.new_group({0, 1}, "tensor_parallel");
  const auto data_parallel = ctx.new_group({1, 2}, "data_parallel");
  auto block = at::ones({4});
  if (ctx.rank() == 0) {
    tensor_parallel.allreduce(block)->wait();
    ctx.group().send(block, 2)->wait();
  } else if (ctx.rank() == 1) {
    data_parallel.broadcast(block)->wait();
    tensor_parallel.allreduce(block)->wait();
  } else if (ctx.rank() == 2) {
    ctx.group().recv(block, 0)->wait();
    data_parallel.broadcast(block)->wait();
  }
  ctx.group().barrier()->wait();
}

void tries_again_for_ever(RankContext& ctx) {
  if (ctx.rank() == 1) return;
  auto loss = at::ones({1});
  for (bool done = false; !done;) {
    try {
      ctx.group().allreduce(loss)->wait();
      done = true;
    } catch (const c10::Error&) {
    }
  }
}

void gives_up_two_calls(RankContext& ctx) {
  if (ctx.rank() == 1) sleep(3600);
  auto loss = at::ones({1});
  try {
    ctx.group().allreduce(loss)->wait(std::chrono::seconds(10));
  } catch (const c10::Error&) {
    ctx.group().barrier()->wait(std::chrono::seconds(10));
  }
}

void waits_for_a_worker_that_waits_for_a_key(RankContext& ctx) {
  if (ctx.rank() == 1) {
    std::mutex mutex;
    std::condition_variable loaded;
    std::thread worker([&] {
      ctx.store()->wait({"shard_7"});
      loaded.notify_one();
    });
    worker.detach();
    std::unique_lock lock(mutex);
    loaded.wait(lock);
  }
  ctx.group().barrier()->wait();
}

}  // namespace wrong_programs
