// SPDX-License-Identifier: BSD-3-Clause
// Making groups is an operation itself, which all ranks must do in the same order.
#include <ATen/ATen.h>

#include <string>

#include "corpus/entry.h"

namespace corpus {
namespace {

// Each rank makes only its own pair's group.
void makes_own_pair(RankContext& ctx, bool corrected) {
  const std::vector<std::vector<int>> pairs{{0, 2}, {1, 3}};
  const auto& own = pairs[static_cast<std::size_t>(ctx.rank() % 2)];
  rehearse::Group pair;
  if (corrected) {
    for (const auto& ranks : pairs) {
      if (const auto made = ctx.new_group(ranks)) pair = made;
    }
  } else {
    pair = ctx.new_group(own);  // <- B081
  }
  pair.allreduce(at::ones({4}))->wait();
}

// Only ranks with a neighbour in their row or column make the communicator of all ranks of a node.
void makes_node_group_where_needed(RankContext& ctx, bool corrected) {
  const bool needed = ctx.rank() != 3;
  rehearse::Group node;
  if (needed || corrected) node = ctx.new_group({0, 1, 2, 3}, "node0");  // <- B082
  if (corrected) node.barrier()->wait();
  ctx.group().barrier()->wait();
}

// Each half of the ranks makes a group of its own. For both halves, this is the first call of new_group().
void makes_groups_of_halves(RankContext& ctx, bool corrected) {
  const bool outer = ctx.rank() == 0 || ctx.rank() == 3;
  rehearse::Group half;
  if (corrected) {
    const auto outside = ctx.new_group({0, 3}), inside = ctx.new_group({1, 2});
    half = outer ? outside : inside;
  } else if (outer) {
    half = ctx.new_group({0, 3});  // <- B084
  } else {
    half = ctx.new_group({1, 2});
  }
  half.barrier()->wait();
}

// Two groups have the same ranks. Both must work, whichever of them is used first.
void uses_either_group_first(RankContext& ctx, bool) {
  for (const bool is_new_first : {false, true}) {
    const auto again = ctx.new_group({0, 1, 2});
    (is_new_first ? again : ctx.group()).barrier()->wait();  // <- B083
    (is_new_first ? ctx.group() : again).barrier()->wait();
  }
}

}  // namespace

Entries groups() {
  return {
      {"B081",
       makes_own_pair,
       {.ranks = 4},
       Verdict::mismatch,
       {0, 1, 2, 3},
       "new_group #1: ranks 0,2 passed {0, 2}, ranks 1,3 passed {1, 3}"},
      {"B082",
       makes_node_group_where_needed,
       {.ranks = 4},
       Verdict::mismatch,
       {3},
       "new_group #1 (\"node0\") at {} in corpus::makes_node_group_where_needed was called by ranks 0-2 and never by "
       "rank 3"},
      {"B083", uses_either_group_first, {.ranks = 3}},
      {"B084",
       makes_groups_of_halves,
       {.ranks = 4},
       Verdict::mismatch,
       {0, 1, 2, 3},
       "new_group #1: ranks 0,3 passed {0, 3}, ranks 1-2 passed {1, 2}"},
  };
}

}  // namespace corpus
