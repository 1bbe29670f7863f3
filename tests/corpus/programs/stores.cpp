// SPDX-License-Identifier: BSD-3-Clause
// Keys of a store, and groups: left over, from another generation, or not there yet.
#include <ATen/ATen.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "corpus/entry.h"

namespace corpus {
namespace {

using StorePtr = c10::intrusive_ptr<c10d::Store>;

StorePtr with_prefix(const std::string& prefix, const StorePtr& store) {
  return c10::make_intrusive<c10d::PrefixStore>(prefix, store);
}

// torch.distributed's barrier at the end of init_process_group(): the last worker releases the others.
void store_based_barrier(const StorePtr& store, int ranks) {
  const std::string key = "store_based_barrier_key:1";
  if (store->add(key, 1) == ranks) store->set(key + ":last_worker", "1");
  store->wait({key + ":last_worker"});  // <- B090
}

// A restarted job finds the counts of its first attempt.
void restarts_with_an_old_store(RankContext& ctx, bool corrected) {
  if (ctx.rank() == 0) ctx.store()->add("store_based_barrier_key:1", ctx.size());
  ctx.group().barrier()->wait();
  store_based_barrier(corrected ? with_prefix("attempt_1", ctx.store()) : ctx.store(), ctx.size());
}

// wait() for two keys, while one of them exists already. In the bug report, the server missed that key.
void waits_for_a_key_that_is_there(RankContext& ctx, bool) {
  if (ctx.rank() == 0) {
    ctx.store()->set("1", "yes");
    ctx.store()->wait({"1", "2"});  // <- B087
  } else {
    ctx.store()->set("2", "yes");
  }
}

// Ranks meet under a prefix. The last to arrive releases all.
void join(const StorePtr& store, int ranks) {
  if (store->add("joined", 1) == ranks) store->set("all", "here");
  store->wait({"all"});  // <- B088
}

void leave(const StorePtr& store, int ranks) {
  if (store->add("left", 1) < ranks) return;
  for (const auto* const key : {"joined", "all", "left"}) store->deleteKey(key);
}

// A group is destroyed and made again under the same prefix: a fast rank joins again before the others have left.
void makes_group_anew(RankContext& ctx, bool corrected) {
  for (int generation = 0; generation < 2; ++generation) {
    const auto store = with_prefix(corrected ? "default_pg/" + std::to_string(generation) : "default_pg", ctx.store());
    join(store, ctx.size());
    leave(store, ctx.size());
  }
}

// Each agent uses its own count of restarts as the prefix of an attempt. One agent is new, so its count differs.
void counts_restarts_locally(RankContext& ctx, bool corrected) {
  const bool of_new_agent = ctx.rank() >= 2;
  const int restarts = of_new_agent && !corrected ? 0 : 1;
  const auto attempt = with_prefix("attempt/" + std::to_string(restarts), ctx.store());
  if (ctx.rank() == 0) attempt->set("nccl_unique_id", "port 2345");
  attempt->get("nccl_unique_id");  // <- B100
  ctx.group().barrier()->wait();
}

// One replica's step begins before its quorum thread has made the group of the new generation.
void reduces_on_an_old_generation(RankContext& ctx, bool corrected) {
  const auto before = ctx.new_group({0, 1}, "quorum_3"), now = ctx.new_group({0, 1}, "quorum_4");
  before.allreduce(at::ones({4}))->wait();  // the step of the old generation
  const auto& group = ctx.rank() == 0 && !corrected ? before : now;
  group.allreduce(at::ones({4}))->wait();  // <- B101
}

// A get() that does not wait: the first rank to complete the rendezvous reads before the master has written.
std::string get_at_once(const StorePtr& store, const std::string& key) {
  if (!store->check({key})) throw std::runtime_error("Key not found: /torch/elastic/store/" + key);  // <- B102
  const auto value = store->get(key);
  return {value.begin(), value.end()};
}

void reads_address_before_it_is_there(RankContext& ctx, bool corrected) {
  if (ctx.rank() == 0) ctx.store()->set("master_addr", "node-0");
  if (corrected) ctx.store()->wait({"master_addr"});
  if (ctx.rank() == 1) get_at_once(ctx.store(), "master_addr");
}

}  // namespace

Entries stores() {
  return {
      {"B087", waits_for_a_key_that_is_there, {.ranks = 2}},
      {"B088",
       makes_group_anew,
       {.ranks = 2},
       Verdict::deadlock,
       {},
       "rank* wait* forever in store wait for key \"default_pg/all\", which is not set, at {} in corpus::join",
       "rank*: waited for store key \"default_pg/all\", which rank * deleted at * in corpus::leave",
       false},
      {"B090",
       restarts_with_an_old_store,
       {.ranks = 4},
       Verdict::deadlock,
       {},
       "ranks 0-3 wait forever in store wait for key \"store_based_barrier_key:1:last_worker\", which is not set, at "
       "{} in "
       "corpus::store_based_barrier",
       "ranks 0-3: waited for store key \"store_based_barrier_key:1:last_worker\", which nobody set; there is "
       "\"store_based_barrier_key:1\" (8), changed last by rank *"},
      {"B100",
       counts_restarts_locally,
       {.ranks = 4},
       Verdict::deadlock,
       {2, 3},
       "ranks 2-3 wait forever in store wait for key \"attempt/0/nccl_unique_id\", which is not set, at {} in "
       "corpus::counts_restarts_locally; ranks 0-1 wait for them in barrier #1 on group \"world\"",
       "ranks 2-3: waited for store key \"attempt/0/nccl_unique_id\", which nobody set; there is "
       "\"attempt/1/nccl_unique_id\" (port 2345), changed last by rank 0 at *"},
      {"B101",
       reduces_on_an_old_generation,
       {.ranks = 2},
       Verdict::deadlock,
       {0, 1},
       "ranks 0 -> 1 -> 0 wait for each other: rank 0 in allreduce #2 on group \"quorum_3\", rank 1 in allreduce #1 on "
       "group \"quorum_4\""},
      {"B102",
       reads_address_before_it_is_there,
       {.ranks = 2},
       Verdict::rank_failed,
       {1},
       "rank 1: Key not found: /torch/elastic/store/master_addr",
       {},
       false},
  };
}

}  // namespace corpus
