// SPDX-License-Identifier: BSD-3-Clause
#include "simulation.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <rehearse/fakes/fake_store.h>
#include <rehearse_internal/checks/rank_remarks.h>
#include <rehearse_internal/exec/restart.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/fakes/fake_fabric.h>
#include <rehearse_internal/job/fiber_rank_context.h>
#include <rehearse_internal/job/run_options.h>
#include <rehearse_internal/job/run_sinks.h>
#include <rehearse_internal/operators/seen_operators.h>
#include <rehearse_internal/sim/virtual_clock.h>
#include <rehearse_internal/torch_state/torch_state.h>

#include "buffers/call_checks.h"
#include "checks/state_checks.h"
#include "compute/counted_operators.h"
#include "explain/watched_store.h"
#include "faults/disk/disk_faults.h"
#include "faults/injector.h"
#include "faults/store/faulty_store.h"
#include "faults/swarm.h"
#include "faults/transfers/slow.h"
#include "memory/memory_meter.h"
#include "network/network_cost.h"

namespace rehearse::sim {
namespace {

// The number of rounds of polls after which a loop counts as endless. A million polls take a fraction of a second. Each
// polling rank polls once in a round, so worlds of many ranks have fewer rounds.
std::uint64_t looks_of_a_livelock(int ranks) {
  constexpr std::uint64_t kOfAllRanks = 1'000'000;
  constexpr std::uint64_t kOfEachRank = 1'000;
  return std::max(kOfAllRanks / static_cast<std::uint64_t>(ranks), kOfEachRank);
}

// A poll takes the latency of the network, and at least a microsecond, because a loop of polls must let time pass.
VirtualDuration cost_of_a_poll(const NetworkModel& network) {
  return std::max<VirtualDuration>(network.latency, std::chrono::microseconds(1));
}

exec::ExecutorOptions execution_of(const WorldOptions& options) {
  return {.ranks = options.ranks,
          .stack_bytes = options.stack_bytes,
          .steps_max = options.steps_max,
          .preempt = options.preempt.value_or(false),
          .patience = options.patience.value_or(VirtualDuration::zero()),
          .file_time = options.file_time,
          .poll_cost = cost_of_a_poll(options.network),
          .idle_polls_max = looks_of_a_livelock(options.ranks)};
}

comm::CommunicatorOptions simulated_communication_of(const WorldOptions& options) {
  auto communication = communication_of(request_of(options));
  communication.buffered_sends = options.buffered_sends;
  return communication;
}

class Faults {
 public:
  Faults(const WorldOptions& options, exec::RankExecutor& executor, const fakes::CostModel& costs,
         std::shared_ptr<fakes::StoreState> keys, MemoryMeter* memory, ScratchFolders& scratch)
      : costs_(costs, options.faults, options.ranks),
        below_(executor.timers(), executor.clock(), costs_),
        ledger_(options.faults, executor),
        partitions_(executor.timers(), executor.clock(), options.ranks),
        store_(std::make_shared<StoreFaults>(std::move(keys), ledger_, partitions_)),
        fabric_(below_, executor.timers(), executor.clock(), partitions_),
        injector_(executor, ledger_, fabric_, partitions_, *store_, memory),
        disk_(scratch, ledger_,
              [this](FaultPlan& plan, int rank, const std::string& write) {
                injector_.act_outside_groups(plan, rank, write);
              }),
        interceptor_(disk_) {}
  ~Faults() { store_->close(); }

  comm::Fabric& fabric() noexcept { return fabric_; }
  fakes::FakeFabric& below() noexcept { return below_; }
  FaultInjector& injector() noexcept { return injector_; }
  c10::intrusive_ptr<c10d::Store> store(c10::intrusive_ptr<c10d::Store> below) const {
    return c10::make_intrusive<FaultyStore>(std::move(below), store_);
  }

  void leave(RunRecord& record) const {
    record.faults = ledger_.lines(record.outcome, record.events.groups());
    record.fired_hash = ledger_.hash();
    record.crashed = injector_.crashed();
  }

 private:
  SlowCost costs_;
  fakes::FakeFabric below_;
  FaultLedger ledger_;
  Partitions partitions_;
  std::shared_ptr<StoreFaults> store_;
  FaultyFabric fabric_;
  FaultInjector injector_;
  DiskFaults disk_;
  const exec::WorldLocal<exec::FileInterceptor>::Lent interceptor_;
};

WorldOptions with_swarm(WorldOptions options, Decisions& decisions) {
  for (auto& fault : draw_swarm(options.swarm, options.ranks, decisions)) options.faults.push_back(std::move(fault));
  return options;
}

// Null if neither a memory limit nor a fault at allocations needs the meter.
std::unique_ptr<MemoryMeter> memory_of(const WorldOptions& options) {
  const bool fails = std::any_of(options.faults.begin(), options.faults.end(),
                                 [](const Fault& fault) { return fault.verb == Fault::Verb::fail_alloc; });
  if (options.memory_bytes == 0 && !fails) return nullptr;
  return std::make_unique<MemoryMeter>(options.ranks, options.memory_bytes, options.call_sites);
}

std::vector<ComputeModel> compute_of(const WorldOptions& options) {
  std::vector<ComputeModel> models;
  for (int rank = 0; rank < options.ranks; ++rank) {
    models.push_back(slowed(options.compute, slowness(options.faults, rank)));
  }
  return models;
}

// Notes each rank that reached the default timeout of its waits and returned nevertheless. A rank that waits with a
// shorter timeout only checks whether the key is there.
void note_waits_in_vain(const fakes::StoreState& keys, const WorldOptions& options, RunRecord& record) {
  for (const auto& wait : keys.waits_in_vain()) {
    const bool has_returned = record.outcome.ranks[static_cast<std::size_t>(wait.rank)] == exec::RankEnd::returned;
    if (wait.timeout != options.timeout || !has_returned) continue;
    record.habits["went on after " + wait.what + " had timed out"].insert(wait.rank);
  }
}

// Notes ranks that were still polling the store at the end, and made no call on a group since their first poll.
void note_polls(const fakes::StoreState& keys, RunRecord& record) {
  for (const auto& [rank, polls] : keys.polls()) {
    const auto* const call = record.events.last(rank);
    const bool only_polls = call == nullptr || call->time_created <= polls.first;
    if (only_polls && polls.go_on(record.outcome.end_time)) record.polls[rank] = keys.wait_in(polls.call, polls.keys);
  }
}

void note_store_calls(const fakes::StoreState& keys, const WorldOptions& options, RunRecord& record) {
  note_waits_in_vain(keys, options, record);
  note_polls(keys, record);
}

void note_calls_left(const comm::Communicators& communicators, RunRecord& record) {
  record.pending = communicators.pending();
  record.pending_groups = communicators.pending_groups();
  record.unused_groups = communicators.unused_groups();
  record.unwaited = communicators.unwaited_calls();
  record.short_messages = communicators.short_messages();
  record.habits = communicators.remarks();
  record.raced_groups = communicators.raced_groups();
}

checks::AutomaticChecks automatic_checks_of(const WorldOptions& options) {
  auto automatic = options.checks;
  if (options.check_level == CheckLevel::all) automatic.replicas = automatic.finite = true;
  if (options.check_level == CheckLevel::none && !automatic.replicas.has_value()) automatic.replicas = false;
  return automatic;
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
  request.transport = options.transport;
  return request;
}

std::unique_ptr<RunRecord> simulate(const WorldOptions& asked, Oracle& oracle, const World::Body& body,
                                    ScratchFolders& scratch, const ShowProgress& show) {
  auto record = std::make_unique<RunRecord>(events_of(request_of(asked)));
  Decisions decisions(oracle, record->decisions);
  const auto options = with_swarm(asked, decisions);
  VirtualClock clock;
  torch_state::TorchRankState state({.seed = options.seed});
  EndOnFailure failures;
  KeepMismatches mismatches(record->mismatches);
  exec::RankExecutor executor(execution_of(options), decisions, clock, state, failures);
  NetworkCost costs(options.network, decisions);
  fakes::FakeFabric fabric(executor.timers(), clock, costs);
  const auto memory = memory_of(options);
  std::optional<exec::WorldLocal<MemoryMeter>::Lent> lent_memory;
  if (memory != nullptr) lent_memory.emplace(*memory);
  std::optional<Faults> faults;
  const auto keys = std::make_shared<fakes::StoreState>();
  keys->take(options.network.store);
  if (!options.faults.empty()) faults.emplace(options, executor, costs, keys, memory.get(), scratch);
  const auto compute = compute_of(options);
  auto communication = simulated_communication_of(options);
  if (faults) communication.interceptor = &faults->injector();
  CallChecks call_checks(options, executor, communication, faults ? faults->below() : fabric);
  StateChecks state_checks(executor, automatic_checks_of(options), record->checks);
  comm::Fabric& transport = faults ? static_cast<comm::Fabric&>(faults->fabric()) : fabric;
  comm::Communicators communicators(executor, state_checks.in_front_of(transport), record->events, mismatches,
                                    communication);
  state_checks.begin(communicators);
  if (faults) faults->injector().begin(communicators);
  WorldServices services{communicators, *record, show, &scratch};

  const exec::WorldLocal<comm::Communicators>::Lent lent_communicators(communicators);
  const exec::WorldLocal<WorldGroups>::Lent lent_groups(services.groups);
  const exec::WorldLocal<compiler::Journal>::Lent journal(record->journal);
  record->checkpoints = elastic::CheckpointJournal(options.call_sites);
  const exec::WorldLocal<elastic::CheckpointJournal>::Lent checkpoints(record->checkpoints);
  const exec::WorldLocal<const compiler::CompileTimeModel>::Lent compile_time(options.compile_time);
  const exec::WorldLocal<checks::WorldChecks>::Lent lent_checks(state_checks.of_world());
  checks::RankRemarks remarks;
  const exec::WorldLocal<checks::RankRemarks>::Lent lent_remarks(remarks);
  const auto history = options.call_sites ? std::make_shared<StoreHistory>() : nullptr;
  record->outcome = executor.run([&](int rank) {
    c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<fakes::FakeStore>(keys);
    store->setTimeout(options.timeout);
    if (faults) store = faults->store(std::move(store));
    if (history) store = c10::make_intrusive<WatchedStore>(std::move(store), history);
    FiberRankContext context(services, rank, options.ranks, std::move(store), state.generator(rank), at::kCPU,
                             exec::incarnation(executor, rank));
    const ComputeModel& model = compute[static_cast<std::size_t>(rank)];
    CountedOperators counted(model);
    const auto calls = call_checks.watch_main_of(rank);
    const operators::SeenOperators seen(
        {state_checks.of_world().watcher_of(rank), calls.get(), model.on() ? &counted : nullptr});
    body(context);
  });
  if (record->outcome.ending == exec::Ending::all_returned) state_checks.of_world().compare_what_is_left();
  record->findings = state_checks.of_world().findings();
  record->blamed = call_checks.conclude(remarks);
  record->notes = remarks.notes();
  record->check_remarks = state_checks.of_world().remarks();
  for (auto& line : remarks.lines()) record->check_remarks.push_back(std::move(line));
  note_calls_left(communicators, *record);
  note_store_calls(*keys, options, *record);
  if (history) record->notes.merge(history->notes());
  for (const auto& [text, ranks] : communicators.notes()) record->notes[text].insert(ranks.begin(), ranks.end());
  record->static_threads = exec::static_threads();
  if (memory) record->memory = memory->uses();
  if (faults) faults->leave(*record);
  return record;
}

}  // namespace rehearse::sim
