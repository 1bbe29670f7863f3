// SPDX-License-Identifier: BSD-3-Clause
#include "simulation.h"

#include <algorithm>

#include <rehearse/exec/world_local.h>
#include <rehearse/fakes/fake_fabric.h>
#include <rehearse/fakes/fake_store.h>
#include <rehearse/job/fiber_rank_context.h>
#include <rehearse/job/run_options.h>
#include <rehearse/job/run_sinks.h>
#include <rehearse/sim/virtual_clock.h>
#include <rehearse/torch_state/torch_state.h>

#include "compute/counted_operators.h"
#include "network/network_cost.h"

namespace rehearse::sim {
namespace {

// A loop that looks so often is taken for one without end. A million looks take a fraction of a second; where many
// ranks look, each has fewer.
std::uint64_t looks_of_a_livelock(int ranks) {
  constexpr std::uint64_t kOfAllRanks = 1'000'000;
  constexpr std::uint64_t kOfEachRank = 1'000;
  return std::max(kOfAllRanks / static_cast<std::uint64_t>(ranks), kOfEachRank);
}

comm::CommunicatorOptions simulated_communication_of(const WorldOptions& options) {
  auto communication = communication_of(request_of(options));
  communication.buffered_sends = options.buffered_sends;
  return communication;
}

}  // namespace

RunRequest request_of(const WorldOptions& options) {
  RunRequest request;
  request.ranks = options.ranks;
  request.seed = options.seed;
  request.timeout = options.timeout;
  request.coalesced_as_one = options.coalesced_as_one;
  request.stack_bytes = options.stack_bytes;
  request.keep_all_events = options.keep_all_events;
  request.call_sites = options.call_sites;
  request.carrier = options.carrier;
  return request;
}

std::unique_ptr<RunRecord> simulate(const WorldOptions& options, Oracle& oracle, const World::Body& body,
                                    const ShowProgress& show) {
  auto record = std::make_unique<RunRecord>(events_of(request_of(options)));
  Decisions decisions(oracle, record->decisions);
  VirtualClock clock;
  torch_state::TorchRankState state({.seed = options.seed});
  EndOnFailure failures;
  KeepMismatches mismatches(record->mismatches);
  const exec::ExecutorOptions execution{.ranks = options.ranks,
                                        .stack_bytes = options.stack_bytes,
                                        .steps_max = options.steps_max,
                                        .preempt = options.preempt.value_or(false),
                                        .idle_looks_max = looks_of_a_livelock(options.ranks)};
  exec::RankExecutor executor(execution, decisions, clock, state, failures);
  NetworkCost costs(options.network, decisions);
  fakes::FakeFabric fabric(executor.timers(), clock, costs);
  comm::Communicators communicators(executor, fabric, record->events, mismatches, simulated_communication_of(options));
  const auto keys = std::make_shared<fakes::StoreState>();
  WorldServices services{communicators, *record, show, {}};

  const exec::WorldLocal<comm::Communicators>::Lent lent_communicators(communicators);
  const exec::WorldLocal<compiler::Journal>::Lent journal(record->journal);
  const exec::WorldLocal<const compiler::CompileTimeModel>::Lent compile_time(options.compile_time);
  record->outcome = executor.run([&](int rank) {
    auto store = c10::make_intrusive<fakes::FakeStore>(keys);
    store->setTimeout(options.timeout);
    FiberRankContext context(services, rank, options.ranks, std::move(store), state.generator(rank));
    const CountedOperators counted(options.compute);
    body(context);
  });
  record->pending = communicators.pending();
  record->pending_groups = communicators.pending_groups();
  record->unwaited = communicators.unwaited_calls();
  return record;
}

}  // namespace rehearse::sim
