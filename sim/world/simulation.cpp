// SPDX-License-Identifier: BSD-3-Clause
#include "simulation.h"

#include <algorithm>
#include <optional>

#include <rehearse/exec/world_local.h>
#include <rehearse/fakes/fake_fabric.h>
#include <rehearse/fakes/fake_store.h>
#include <rehearse/job/fiber_rank_context.h>
#include <rehearse/job/run_options.h>
#include <rehearse/job/run_sinks.h>
#include <rehearse/sim/virtual_clock.h>
#include <rehearse/torch_state/torch_state.h>

#include "compute/counted_operators.h"
#include "faults/injector.h"
#include "faults/slow.h"
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

// What stands between a world and what goes wrong in it on purpose.
class Faults {
 public:
  Faults(const WorldOptions& options, exec::RankExecutor& executor, const fakes::CostModel& costs)
      : costs_(costs, options.faults, options.ranks),
        below_(executor.timers(), executor.clock(), costs_),
        fabric_(below_, executor.timers(), executor.clock()),
        injector_(options.faults, executor, fabric_) {}

  comm::Fabric& fabric() noexcept { return fabric_; }
  FaultInjector& injector() noexcept { return injector_; }

 private:
  SlowCost costs_;
  fakes::FakeFabric below_;
  FaultyFabric fabric_;
  FaultInjector injector_;
};

std::vector<ComputeModel> compute_of(const WorldOptions& options) {
  std::vector<ComputeModel> models;
  for (int rank = 0; rank < options.ranks; ++rank) {
    models.push_back(slowed(options.compute, slowness(options.faults, rank)));
  }
  return models;
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
  std::optional<Faults> faults;
  if (!options.faults.empty()) faults.emplace(options, executor, costs);
  const auto compute = compute_of(options);
  auto communication = simulated_communication_of(options);
  if (faults) communication.gate = &faults->injector();
  comm::Communicators communicators(executor, faults ? faults->fabric() : fabric, record->events, mismatches,
                                    communication);
  if (faults) faults->injector().begin(communicators);
  const auto keys = std::make_shared<fakes::StoreState>();
  WorldServices services{communicators, *record, show, {}};

  const exec::WorldLocal<comm::Communicators>::Lent lent_communicators(communicators);
  const exec::WorldLocal<compiler::Journal>::Lent journal(record->journal);
  const exec::WorldLocal<const compiler::CompileTimeModel>::Lent compile_time(options.compile_time);
  record->outcome = executor.run([&](int rank) {
    auto store = c10::make_intrusive<fakes::FakeStore>(keys);
    store->setTimeout(options.timeout);
    FiberRankContext context(services, rank, options.ranks, std::move(store), state.generator(rank));
    const CountedOperators counted(compute[static_cast<std::size_t>(rank)]);
    body(context);
  });
  record->pending = communicators.pending();
  record->pending_groups = communicators.pending_groups();
  record->unwaited = communicators.unwaited_calls();
  if (!faults) return record;
  record->faults = faults->injector().ledger(record->outcome);
  record->crashed = faults->injector().crashed();
  return record;
}

}  // namespace rehearse::sim
