// SPDX-License-Identifier: BSD-3-Clause
// Networks that fail, and a store whose process has ended.
#include <ATen/ATen.h>

#include <chrono>

#include <rehearse/comm/errors.h>

#include "corpus/entry.h"

namespace corpus {
namespace {

using namespace std::chrono_literals;

// Rank 0 hosts the store's server, which ends before rank 3 reads a key. So rank 3 cannot reach the store.
void reads_from_an_owner_that_has_ended(RankContext& ctx, bool corrected) {
  if (ctx.rank() == 0) ctx.store()->set("global_step", "100");
  ctx.group().barrier()->wait();
  if (ctx.rank() == 3) {
    ctx.compute(2ms);
    ctx.store()->get("global_step");  // <- B086
  }
  if (corrected) ctx.group().barrier()->wait();
}

// The link between two nodes fails in an all-reduce. The program does not query the link's status, but only waits.
void waits_for_a_broken_link(RankContext& ctx, bool corrected) {
  for (int step = 0; step < 8; ++step) {
    try {
      ctx.group().allreduce(at::ones({64}))->wait();  // <- B122
    } catch (const rehearse::CommError&) {
      if (!corrected) throw;
      return;
    }
  }
}

// One rank's connections are reset. Its transport is dead, and training hangs instead of failing.
void trains_over_a_reset_connection(RankContext& ctx, bool corrected) {
  for (int step = 0; step < 16; ++step) {
    try {
      ctx.group().allreduce(at::ones({8}))->wait();  // <- B124
    } catch (const rehearse::CommError&) {
      if (!corrected) throw;
      return;
    }
  }
}

WorldOptions with_fault(int ranks, const char* fault) {
  WorldOptions options;
  options.ranks = ranks;
  options.faults = {rehearse::parse_fault(fault)};
  return options;
}

}  // namespace

Entries networks() {
  return {
      {"B086",
       reads_from_an_owner_that_has_ended,
       with_fault(4, "partition rank=0 after=1ms"),
       Verdict::deadlock,
       {},
       "the network is cut between rank 0 and ranks 1-3 since 1 ms; rank 3 waits forever in store get: rank 3 is cut "
       "off from the store of rank 0 at {} in corpus::reads_from_an_owner_that_has_ended",
       {},
       true,
       WorldOptions{.ranks = 4}},
      {"B122",
       waits_for_a_broken_link,
       with_fault(4, "partition rank=0-1 from=2-3 after=50us"),
       Verdict::deadlock,
       {},
       "the network is cut between ranks 0-1 and ranks 2-3 since 50 us; ranks 0-3 wait forever in allreduce #3 on "
       "group \"world\" at {} in corpus::waits_for_a_broken_link"},
      {"B124",
       trains_over_a_reset_connection,
       with_fault(8, "partition rank=3 at=allreduce#9"),
       Verdict::deadlock,
       {},
       "the network is cut between rank 3 and ranks 0-2,4-7 since 560.008 us; ranks 0-7 wait forever in allreduce #9 "
       "on group \"world\" at {} in corpus::trains_over_a_reset_connection"},
  };
}

}  // namespace corpus
