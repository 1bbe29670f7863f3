// SPDX-License-Identifier: BSD-3-Clause
// Sends and receives in orders that do not fit. A rank that waits after each call behaves like an in-order stream.
#include <ATen/ATen.h>

#include "corpus/entry.h"
#include "corpus/tensors.h"

namespace corpus {
namespace {

// Even ranks send first and odd ones receive first, until a compiler pass moves the receives to the front.
void moves_receives_to_the_front(RankContext& ctx, bool corrected) {
  const auto mine = at::ones({4}), theirs = at::zeros({4});
  const int peer = ctx.rank() ^ 1;
  const bool sends_first = corrected && ctx.rank() % 2 == 0;
  if (sends_first) ctx.group().send(mine, peer)->wait();
  ctx.group().recv(theirs, peer)->wait();  // <- B011
  if (!sends_first) ctx.group().send(mine, peer)->wait();
  ctx.group().barrier()->wait();
}

void sends_first_on_both(RankContext& ctx, bool corrected) {
  const auto mine = at::ones({4}), theirs = at::zeros({4});
  const int peer = 1 - ctx.rank();
  const auto sent = ctx.group().send(mine, peer);
  if (!corrected) sent->wait();  // <- B012
  ctx.group().recv(theirs, peer)->wait();
  if (corrected) sent->wait();
}

// Before each tensor, its shape goes round a pipeline whose last stage sends to the first. For tensors, even stages
// send first and odd ones receive first. For shapes, all send first.
void exchanges_shapes_in_one_order(RankContext& ctx, bool corrected) {
  const auto shape = at::ones({3}, at::kLong), other = at::zeros({3}, at::kLong);
  const int next = (ctx.rank() + 1) % ctx.size(), before = (ctx.rank() + ctx.size() - 1) % ctx.size();
  if (corrected && ctx.rank() % 2 == 1) {
    ctx.group().recv(other, before)->wait();
    ctx.group().send(shape, next)->wait();
  } else {
    ctx.group().send(shape, next)->wait();  // <- B014
    ctx.group().recv(other, before)->wait();
  }
}

// A batch returns one work per call, as with gloo. NCCL returns one work for all.
void keeps_last_work_of_batch(RankContext& ctx, bool corrected) {
  const auto mine = at::ones({4}), theirs = at::zeros({4});
  const int peer = ctx.rank() ^ 1;
  std::vector<rehearse::Work> works;
  works.push_back(ctx.group().recv(theirs, peer));  // <- B015
  works.push_back(ctx.group().send(mine, peer));
  works.back()->wait();
  if (corrected) works.front()->wait();
}

// Two communicators for one pair of ranks, one for each direction.
void uses_two_directions_in_turn(RankContext& ctx, bool corrected) {
  const auto to_1 = ctx.new_group({0, 1}, "to_1"), to_0 = ctx.new_group({0, 1}, "to_0");
  const auto mine = at::ones({4}), theirs = at::zeros({4});
  const auto& out = ctx.rank() == 0 ? to_1 : to_0;
  const auto& in = ctx.rank() == 0 ? to_0 : to_1;
  if (corrected && ctx.rank() == 1) in.recv(theirs, 0)->wait();
  out.send(mine, 1 - ctx.rank())->wait();  // <- B016
  if (!corrected || ctx.rank() == 0) in.recv(theirs, 1 - ctx.rank())->wait();
}

// Two stages per rank, interleaved: forwards of micro-batches 1 and 2 in one direction, backward of 0 in the other.
void runs_interleaved_schedule(RankContext& ctx, bool corrected) {
  const auto forward = at::ones({4}), backward = at::ones({2});
  const auto& group = ctx.group();
  if (ctx.rank() == 0) {
    group.send(forward, 1)->wait();
    group.send(forward, 1)->wait();
    group.recv(backward, 1)->wait();
  } else {
    group.recv(forward, 0)->wait();
    if (corrected) group.recv(forward, 0)->wait();
    group.send(backward, 0)->wait();  // <- B017
    if (!corrected) group.recv(forward, 0)->wait();
  }
}

constexpr int kMessages = 4;

rehearse::Work launch(RankContext& ctx, const std::vector<std::pair<bool, int>>& plan) {
  const int peer = 1 - ctx.rank();
  ctx.group()->startCoalescing(at::kCPU);
  for (const auto& [is_send, number] : plan) {
    if (is_send) {
      ctx.group().send(at::ones({2}), peer, number);
    } else {
      ctx.group().recv(at::zeros({2}), peer, number);
    }
  }
  return ctx.group()->endCoalescing(at::kCPU);
}

// NCCL launches very many coalesced messages as several plans, one after the other. Each plan ends only when all of its
// messages have met their counterparts.
void splits_group_into_plans(RankContext& ctx, bool corrected) {
  std::vector<std::pair<bool, int>> messages;
  for (int i = 0; i < kMessages; ++i) messages.emplace_back(true, i);
  for (int i = 0; i < kMessages; ++i)
    messages.insert(corrected ? messages.begin() + 2 * i : messages.end(), std::pair(false, i));
  const auto half = messages.begin() + kMessages;
  launch(ctx, {messages.begin(), half})->wait();  // <- B018
  launch(ctx, {half, messages.end()})->wait();
}

// One rank alternates isend and irecv, the other receives first. On one stream, even "asynchronous" calls wait.
void interleaves_on_one_side(RankContext& ctx, bool corrected) {
  const auto mine = at::ones({4}), theirs = at::zeros({4});
  const bool in_turn = ctx.rank() == 0;
  if (in_turn || corrected) {
    for (int i = 0; i < 2; ++i) {
      if (in_turn) ctx.group().send(mine, 1, i)->wait();
      ctx.group().recv(theirs, 1 - ctx.rank(), i)->wait();
      if (!in_turn) ctx.group().send(mine, 0, i)->wait();
    }
    return;
  }
  for (int i = 0; i < 2; ++i) ctx.group().recv(theirs, 0, i)->wait();  // <- B019
  for (int i = 0; i < 2; ++i) ctx.group().send(mine, 0, i)->wait();
}

void exits_before_its_send_is_over(RankContext& ctx, bool corrected) {
  const auto block = at::ones({4});
  if (ctx.rank() == 1) {
    ctx.group().recv(block, 0)->wait();
    return;
  }
  const auto sent = ctx.group().send(block, 1);  // <- B030
  if (corrected) sent->wait();
}

}  // namespace

Entries messages() {
  return {
      {"B011",
       moves_receives_to_the_front,
       {.ranks = 2},
       Verdict::deadlock,
       {0, 1},
       "ranks 0 -> 1 -> 0 wait for each other: rank 0 in recv #1 from rank 1 on group \"world\", rank 1 in recv #1 "
       "from rank 0 on group \"world\""},
      {"B012",
       sends_first_on_both,
       {.ranks = 2},
       Verdict::deadlock,
       {0, 1},
       "ranks 0 -> 1 -> 0 wait for each other: rank 0 in send #1 to rank 1 on group \"world\", rank 1 in send #1 to "
       "rank 0 on group \"world\""},
      {"B014",
       exchanges_shapes_in_one_order,
       {.ranks = 4},
       Verdict::deadlock,
       {0, 1, 2, 3},
       "ranks 0 -> 1 -> 2 -> 3 -> 0 wait for each other: rank 0 in send #1 to rank 1 on group \"world\", rank 1 in "
       "send #1 to rank 2 on group \"world\", rank 2 in send #1 to rank 3 on group \"world\", rank 3 in send #1 to "
       "rank 0 on group \"world\""},
      {"B015",
       keeps_last_work_of_batch,
       {.ranks = 4},
       Verdict::ok,
       {},
       "nobody waited for recv #1 from rank * on group \"world\" of ranks 0-3 at {} in "
       "corpus::keeps_last_work_of_batch"},
      {"B016",
       uses_two_directions_in_turn,
       {.ranks = 2},
       Verdict::deadlock,
       {0, 1},
       "ranks 0 -> 1 -> 0 wait for each other: rank 0 in send #1 to rank 1 on group \"to_1\", rank 1 in send #1 to "
       "rank 0 on group \"to_0\""},
      {"B017",
       runs_interleaved_schedule,
       {.ranks = 2},
       Verdict::deadlock,
       {0, 1},
       "ranks 0 -> 1 -> 0 wait for each other: rank 0 in send #2 to rank 1 on group \"world\", rank 1 in send #2 to "
       "rank 0 on group \"world\""},
      {"B018",
       splits_group_into_plans,
       {.ranks = 2, .coalesced_as_one = true},
       Verdict::deadlock,
       {0, 1},
       "ranks 0 -> 1 -> 0 wait for each other: rank 0 in send #1 to rank 1 on group \"world\" and send #2 to rank 1 "
       "with tag 1 on *, rank 1 in send #1 to rank 0 on group \"world\" and send #2 to rank 0 with tag 1 on *"},
      {"B019",
       interleaves_on_one_side,
       {.ranks = 2},
       Verdict::deadlock,
       {0, 1},
       "ranks 0 -> 1 -> 0 wait for each other: rank 0 in recv #2 from rank 1 on group \"world\", rank 1 in recv #2 "
       "from rank 0 with tag 1 on group \"world\""},
      {"B030",
       exits_before_its_send_is_over,
       {.ranks = 2},
       Verdict::ok,
       {},
       "nobody waited for send #1 to rank 1 on group \"world\" of rank 0 at {} in "
       "corpus::exits_before_its_send_is_over"},
  };
}

}  // namespace corpus
