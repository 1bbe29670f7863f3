// SPDX-License-Identifier: BSD-3-Clause
// Ranks disagree about the order of their collectives, or about the contents.
#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <utility>

#include "corpus/entry.h"
#include "corpus/tensors.h"

namespace corpus {
namespace {

// A reduce-scatter bucket closes when it is full. Each rank fills it in the order in which its gradients become ready.
void closes_bucket_when_full(RankContext& ctx, bool corrected) {
  std::vector<std::string> ready{"g0", "g1", "g2"};
  if (ctx.rank() == 1 && !corrected) std::swap(ready[1], ready[2]);
  std::string bucket;
  for (const auto& gradient : ready) {
    bucket += (bucket.empty() ? "" : ",") + gradient;
    if (bucket.size() < 5) continue;  // "g0,g1": two gradients fill it
    const auto label = ctx.label(bucket);
    ctx.group().reduce_scatter(at::zeros({2}), {at::ones({2}), at::ones({2})})->wait();  // <- B034
    bucket.clear();
  }
}

// Each call of a module gathers its parameters. One rank calls two modules of equal size in another order.
void calls_modules_in_another_order(RankContext& ctx, bool corrected) {
  std::vector<std::string> modules{"layers.0", "layers.1"};
  if (ctx.rank() == 2 && !corrected) std::swap(modules[0], modules[1]);
  const auto shard = at::ones({4});
  for (const auto& module : modules) {
    const auto label = ctx.label(module);
    ctx.group().allgather(room_for(shard, ctx.size()), shard)->wait();  // <- B035
  }
}

// A flat bucket is filled in the order of gradients, which follows the forward. The forwards differ between ranks.
void fills_bucket_in_own_order(RankContext& ctx, bool corrected) {
  auto x = at::ones({4}).set_requires_grad(true), y = at::ones({4}).set_requires_grad(true);
  const auto bucket = at::zeros({8});
  std::int64_t offset = 0;
  std::string members;
  const auto append = [&](const std::string& name, const at::Tensor& gradient) {
    members += (members.empty() ? "" : ",") + name;
    bucket.narrow(0, offset, 4).copy_(gradient);
    offset += 4;
  };
  x.register_hook([&](const at::Tensor& gradient) { append("layer1", gradient); });
  y.register_hook([&](const at::Tensor& gradient) { append("layer2", gradient); });
  const bool other_branch_first = ctx.rank() == 1 && !corrected;
  const auto first = other_branch_first ? (y * 3).sum() : (x * 2).sum();
  const auto second = other_branch_first ? (x * 2).sum() : (y * 3).sum();
  (first + second).backward();
  const auto label = ctx.label(members);
  ctx.group().allreduce(bucket)->wait();  // <- B036
}

// The program broadcasts a dictionary's buffers one by one, in an order that differs between ranks.
void broadcasts_buffers_in_own_order(RankContext& ctx, bool corrected) {
  std::vector<std::pair<std::string, std::int64_t>> buffers{{"rope.inverse", 256}, {"head.scale", 128}};
  if (ctx.rank() == 1) std::swap(buffers[0], buffers[1]);
  if (corrected) std::sort(buffers.begin(), buffers.end());
  for (const auto& [name, elements] : buffers) ctx.group().broadcast(at::ones({elements}))->wait();  // <- B037
}

// Each rank makes one all-reduce per chunk of its own completions. Only the main process calls the barrier.
void reduces_by_own_chunks(RankContext& ctx, bool corrected) {
  const auto tokens = at::full({1}, ctx.rank() == 0 ? 5 : 9);
  if (corrected) ctx.group().allreduce(tokens, c10d::ReduceOp::MAX)->wait();
  for (std::int64_t done = 0; done < tokens.item<std::int64_t>(); done += 4)
    ctx.group().allreduce(at::ones({2}))->wait();
  if (ctx.rank() == 0 || corrected) ctx.group().barrier()->wait();  // <- B038
}

// On one rank, a compiler pass has moved a collective to the place of its wait.
void moves_collective_to_its_wait(RankContext& ctx, bool corrected) {
  const auto a = at::ones({4}), b = at::ones({2});
  if (ctx.rank() == 0 && !corrected) {
    ctx.group().allreduce(b)->wait();  // <- B060
    ctx.group().allreduce(a)->wait();
    return;
  }
  const auto first = ctx.group().allreduce(a), second = ctx.group().allreduce(b);
  second->wait();
  first->wait();
}

// Accumulated gradients are float, fresh ones bfloat16. Which kind a rank has depends on the parameters that it used.
void reduces_fresh_gradients_in_their_type(RankContext& ctx, bool corrected) {
  const bool is_fresh = ctx.rank() == 1;
  const auto type = is_fresh && !corrected ? at::kBFloat16 : at::kFloat;
  const std::vector<at::Tensor> gradients(static_cast<std::size_t>(ctx.size()), at::ones({4}, type));
  ctx.group().reduce_scatter(at::zeros({4}, type), gradients)->wait();  // <- B137
}

}  // namespace

Entries collective_order() {
  return {
      {"B034",
       closes_bucket_when_full,
       {.ranks = 2},
       Verdict::mismatch,
       {0, 1},
       "ranks 0 and 1 disagree at #1 of group \"world\": rank 0 called reduce_scatter(sum, float32 2 x [2], cpu) "
       "label=\"g0,g1\", rank 1 called reduce_scatter(sum, float32 2 x [2], cpu) label=\"g0,g2\"; they differ in label "
       "(\"g0,g1\", \"g0,g2\")"},
      {"B035",
       calls_modules_in_another_order,
       {.ranks = 3},
       Verdict::mismatch,
       {2},
       "rank 2 called allgather(float32 3 x [4], cpu) label=\"layers.1\" while ranks 0-1 called allgather(float32 3 x "
       "[4], cpu) label=\"layers.0\" as #1 of group \"world\": label differs"},
      {"B036",
       fills_bucket_in_own_order,
       {.ranks = 3},
       Verdict::mismatch,
       {1},
       "rank 1 called allreduce(sum, float32[8], cpu) label=\"layer1,layer2\" while ranks 0,2 called allreduce(sum, "
       "float32[8], cpu) label=\"layer2,layer1\" as #1 of group \"world\": label differs"},
      {"B037",
       broadcasts_buffers_in_own_order,
       {.ranks = 3},
       Verdict::mismatch,
       {1},
       "rank 1 called broadcast(root=0, float32[128], cpu) while ranks 0,2 called broadcast(root=0, float32[256], cpu) "
       "as #1 of group \"world\": shape [128], not [256]"},
      {"B038",
       reduces_by_own_chunks,
       {.ranks = 3},
       Verdict::mismatch,
       {0},
       "rank 0 called barrier() while ranks 1-2 called allreduce(sum, float32[2], cpu) as #3 of group \"world\": op "
       "barrier, not allreduce"},
      {"B060",
       moves_collective_to_its_wait,
       {.ranks = 3},
       Verdict::mismatch,
       {0},
       "rank 0 called allreduce(sum, float32[2], cpu) while ranks 1-2 called allreduce(sum, float32[4], cpu) as #1 of "
       "group \"world\": shape [2], not [4]"},
      {"B137",
       reduces_fresh_gradients_in_their_type,
       {.ranks = 3},
       Verdict::mismatch,
       {1},
       "rank 1 called reduce_scatter(sum, bfloat16 3 x [4], cpu) while ranks 0,2 called reduce_scatter(sum, float32 3 "
       "x [4], cpu) as #1 of group \"world\": dtype bfloat16, not float32"},
  };
}

}  // namespace corpus
