// SPDX-License-Identifier: BSD-3-Clause
#include "demo_programs.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace demo {

static void sync_mean(RankContext& ctx, at::Tensor tensor) {
  ctx.group().allreduce(tensor, c10d::ReduceOp::AVG)->wait();
}

void leaves_out_a_helpers_call(RankContext& ctx) {
  auto loss = at::ones({1}), accuracy = at::ones({1});
  sync_mean(ctx, loss);
  if (ctx.rank() == 1) return;
  sync_mean(ctx, accuracy);
}

void calls_a_helper_with_another_shape(RankContext& ctx) {
  auto loss = at::ones({1}), gradient = at::ones({4});
  if (ctx.rank() == 2) {
    sync_mean(ctx, gradient);
  } else {
    sync_mean(ctx, loss);
  }
}

namespace {

struct Farewell {
  RankContext& ctx;
  ~Farewell() { ctx.group().barrier()->wait(); }
};

}  // namespace

void says_farewell_in_a_destructor(RankContext& ctx) {
  const Farewell farewell{ctx};
  if (ctx.rank() == 2) throw std::runtime_error("disk is full");
  auto loss = at::ones({1});
  ctx.group().allreduce(loss)->wait();
}

void says_farewell_to_nobody(RankContext& ctx) {
  if (ctx.rank() != 2) return;
  const Farewell farewell{ctx};
  throw std::runtime_error("disk is full");
}

void forgets_to_join(RankContext& ctx) {
  std::thread loader([] {});
  if (ctx.rank() == 2) throw std::runtime_error("disk is full");
  loader.join();
}

void leaves_out_new_group(RankContext& ctx) {
  if (ctx.rank() != 2) ctx.new_group({0, 1}, "pair");
  ctx.group().barrier()->wait();
}

void leaves_out_new_group_and_uses_it(RankContext& ctx) {
  auto loss = at::ones({1});
  if (ctx.rank() == 2) {
    ctx.group().barrier()->wait();
  } else {
    ctx.new_group({0, 2, 1}, "experts").allreduce(loss)->wait();
    ctx.group().barrier()->wait();
  }
}

void forgets_to_wait(RankContext& ctx) {
  auto loss = at::ones({1});
  ctx.group().allreduce(loss);
}

void forgets_the_last_of_several(RankContext& ctx) {
  std::vector<at::Tensor> gradients{at::ones({1}), at::ones({1}), at::ones({1})};
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
  for (auto& gradient : gradients) works.push_back(ctx.group().allreduce(gradient));
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (i != 2 || ctx.rank() != 0) works[i]->wait();
  }
}

void waits_in_a_barrier_for_all(RankContext& ctx) {
  auto loss = at::ones({1}), norm = at::ones({1});
  const auto work = ctx.group().allreduce(loss);
  ctx.group().allreduce(norm);
  ctx.group().barrier()->wait();
}

void drops_what_an_exception_leaves(RankContext& ctx) {
  auto loss = at::ones({1});
  const auto work = ctx.group().allreduce(loss);
  if (ctx.rank() == 1) throw std::runtime_error("disk is full");
  work->wait();
}

void skips_a_step(RankContext& ctx) {
  auto gradient = at::ones({1}), loss = at::ones({1});
  for (int step = 0; step < 5; ++step) {
    if (step != 2 || ctx.rank() != 1) ctx.group().allreduce(gradient)->wait();
  }
  ctx.group().broadcast(loss)->wait();
}

void waits_elsewhere_than_it_called(RankContext& ctx) {
  if (ctx.rank() == 1) return;
  auto loss = at::ones({1});
  const auto work = ctx.group().allreduce(loss);
  loss.size(0);
  work->wait();
}

void sends_into_a_buffer(RankContext& ctx) {
  auto block = at::ones({4});
  if (ctx.rank() == 0) ctx.group().send(block, 1)->wait();
}

void sends_into_a_buffer_beside_a_hang(RankContext& ctx) {
  auto block = at::ones({8});
  if (ctx.rank() == 0) ctx.group().send(block, 1)->wait();
  if (ctx.rank() == 1) ctx.group().recv(block, 2)->wait();
  ctx.group().barrier()->wait();
}

void receives_from_anybody(RankContext& ctx) {
  auto block = at::ones({4});
  c10::intrusive_ptr<c10d::Work> sent;
  if (ctx.rank() != 0) sent = ctx.group().send(block, 0);
  ctx.group().barrier()->wait();
  if (ctx.rank() != 0) {
    sent->wait();
    return;
  }
  for (int message = 1; message < ctx.size(); ++message) {
    std::vector<at::Tensor> piece{at::zeros({4})};
    ctx.group()->recvAnysource(piece, 0)->wait();
  }
  throw std::runtime_error("the order of the messages matters");
}

void throws_with_a_line_end_first(RankContext& ctx) {
  if (ctx.rank() == 1) throw std::runtime_error("\n\n  cannot read shard 1\n  at byte 17\n");
}

void throws_like_an_allocator(RankContext& ctx) {
  if (ctx.rank() == 1) {
    throw std::runtime_error(
        "[enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
        "allocate 4398046511104 bytes. Error code 12 (Cannot allocate memory), and some more that nobody reads");
  }
}

void throws_like_torchscript(RankContext& ctx) {
  if (ctx.rank() == 1) {
    throw std::runtime_error(
        "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript (most recent call "
        "last):\n  File \"<string>\", line 3, in forward\n    return x + self.weight\n           ~~~~~~~~~~~~~~~ "
        "<--- HERE\nRuntimeError: The size of tensor a (3) must match the size of tensor b (4)\n");
  }
}

void throws_nested(RankContext& ctx) {
  if (ctx.rank() != 1) return;
  try {
    try {
      throw std::runtime_error("disk is full");
    } catch (...) {
      std::throw_with_nested(std::runtime_error("cannot write shard 1"));
    }
  } catch (...) {
    std::throw_with_nested(std::runtime_error("step 3 failed"));
  }
}

void throws_what_a_terminal_obeys(RankContext& ctx) {
  if (ctx.rank() == 1)
    throw std::runtime_error(
        "\x1b[2J\x1b[31mred\a \xff\xfe caf\xc3\xa9 \xc2\x9b"
        "1m");
}

void sends_one_row_too_many(RankContext& ctx) {
  std::vector<std::int64_t> sends(static_cast<std::size_t>(ctx.size()), 2), receives = sends;
  if (ctx.rank() == 1) ++sends[9];
  auto tokens = at::ones({ctx.size() * 2 + (ctx.rank() == 1 ? 1 : 0)});
  auto routed = at::ones({ctx.size() * 2});
  ctx.group().alltoall(routed, tokens, receives, sends)->wait();
}

void polls_behind_a_buffered_send(RankContext& ctx) {
  auto block = at::ones({16});
  if (ctx.rank() != 0) return;
  ctx.group().send(block, 1)->wait();
  while (!ctx.store()->check({"received"})) {
  }
}

void broadcasts_from_a_branch(RankContext& ctx) {
  auto weights = at::ones({4});
  for (int step = 0; step < 3; ++step) {
    if (ctx.rank() == 1 && step == 1) {
      ctx.group().broadcast(weights)->wait();
      continue;
    }
    ctx.group().broadcast(weights)->wait();
  }
}

void waits_in_an_initialiser(RankContext& ctx) {
  static const int size = [&ctx] {
    ctx.group().barrier()->wait();
    return ctx.size();
  }();
  auto sizes = at::ones({size});
}

}  // namespace demo
