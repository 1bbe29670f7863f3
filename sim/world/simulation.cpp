// SPDX-License-Identifier: BSD-3-Clause
#include "simulation.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include <rehearse/fakes/fake_store.h>
#include <rehearse_internal/exec/interpreter.h>
#include <rehearse_internal/exec/restart.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/fakes/fake_fabric.h>
#include <rehearse_internal/job/fiber_rank_context.h>
#include <rehearse_internal/job/run_options.h>
#include <rehearse_internal/job/run_sinks.h>
#include <rehearse_internal/operators/seen_operators.h>
#include <rehearse_internal/sim/virtual_clock.h>
#include <rehearse_internal/torch_state/torch_state.h>

#include "faults/swarm.h"
#include "faults/text/fault_fields.h"
#include "faults/transfers/slow.h"
#include "layers/layers.h"
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

// A rank that comes late by the patience must not miss the timeout of the world's calls.
VirtualDuration patience_of(const WorldOptions& options) {
  const auto patience = options.patience.value_or(VirtualDuration::zero());
  return options.timeout.count() > 0 ? std::min<VirtualDuration>(patience, options.timeout / 4) : patience;
}

exec::ExecutorOptions execution_of(const WorldOptions& options) {
  return {.ranks = options.ranks,
          .stack_bytes = options.stack_bytes,
          .steps_max = options.steps_max,
          .preempt = options.preempt.value_or(false),
          .patience = patience_of(options),
          .file_time = options.file_time,
          .poll_cost = cost_of_a_poll(options.network),
          .idle_polls_max = looks_of_a_livelock(options.ranks)};
}

WorldOptions with_swarm(WorldOptions options, Decisions& decisions) {
  for (auto& fault : draw_swarm(options.swarm, options.ranks, decisions)) options.faults.push_back(std::move(fault));
  return options;
}

// Null if neither a memory limit nor a fault at allocations needs the meter.
std::unique_ptr<MemoryMeter> memory_of(const WorldOptions& options) {
  const bool fails =
      std::ranges::any_of(options.faults, [](const Fault& fault) { return traits_of(fault.verb).of_memory; });
  if (options.memory_bytes == 0 && !fails) return nullptr;
  return std::make_unique<MemoryMeter>(options.ranks, options.memory_bytes, options.call_sites);
}

std::shared_ptr<fakes::StoreState> keys_of(const WorldOptions& options) {
  auto keys = std::make_shared<fakes::StoreState>();
  keys->take(options.network.store);
  return keys;
}

// Notes each rank that reached the default timeout of its waits, and then returned or made a call on a group. A rank
// that waits with a shorter timeout only checks whether the key is there.
void note_waits_in_vain(const fakes::StoreState& keys, const WorldOptions& options, RunRecord& record) {
  for (const auto& wait : keys.waits_in_vain()) {
    const bool has_returned = record.outcome.ranks[static_cast<std::size_t>(wait.rank)] == exec::RankEnd::returned;
    const auto* const last = record.events.last(wait.rank);
    const bool went_on = has_returned || (last != nullptr && last->time_created >= wait.ended);
    if (wait.timeout != options.timeout || !went_on) continue;
    record.habits["went on after " + wait.what + " had timed out"].insert(wait.rank);
  }
}

// See RunRecord::polls.
void note_polls(const fakes::StoreState& keys, RunRecord& record) {
  const auto& outcome = record.outcome;
  const auto joins = [&](int rank) {
    return std::ranges::any_of(outcome.last_waits(), [rank](const exec::BlockedFiber& fiber) {
      return fiber.rank == rank && fiber.fiber_of_rank == 0 && fiber.waits_for == std::vector{rank};
    });
  };
  for (const auto& [fiber, polls] : keys.polls()) {
    const auto [rank, fiber_of_rank] = fiber;
    const auto* const call = record.events.last(rank);
    const bool only_polls = call == nullptr || call->time_created <= polls.first;
    if (!only_polls || !polls.go_on(outcome.time_of_last_waits()) || (fiber_of_rank != 0 && !joins(rank))) continue;
    record.polls[fiber] = keys.wait_in(polls.call, polls.keys);
  }
}

// The state around `state` in a process with an interpreter; null in others.
std::unique_ptr<exec::RankState> state_of_interpreter(exec::RankState& state) {
  auto* const interpreter = exec::interpreter();
  return interpreter != nullptr ? interpreter->state_around(state) : nullptr;
}

// What a world runs on: time and its scheduler, the network, the memory of ranks, and what the store holds.
struct Machine {
  const WorldOptions options;
  Decisions& decisions;
  ScratchFolders& scratch;
  RunRecord& record;
  VirtualClock clock{options.date.time_since_epoch()};
  torch_state::TorchRankState state{{.seed = options.seed}};
  const std::unique_ptr<exec::RankState> interpreted = state_of_interpreter(state);
  EndOnFailure failures = {};
  exec::RankExecutor executor{execution_of(options), decisions, clock, interpreted ? *interpreted : state, failures};
  const NetworkCost network{options.network, decisions};
  const SlowCost costs{network, options.faults, options.ranks};
  fakes::FakeFabric fabric{executor.timers(), clock, costs};
  const std::unique_ptr<MemoryMeter> memory = memory_of(options);
  const std::shared_ptr<fakes::StoreState> keys = keys_of(options);
  const exec::WorldLocal<const compiler::CompileTimeModel>::Lent lent_compile_time{options.compile_time};
  const exec::WorldLocal<elastic::CheckpointJournal>::Lent lent_checkpoints{record.checkpoints};

  // Call this after the run.
  void leave() const {
    note_waits_in_vain(*keys, options, record);
    note_polls(*keys, record);
    record.static_threads = exec::static_threads();
    if (memory != nullptr) record.memory = memory->uses();
  }
};

using Layers = std::deque<std::unique_ptr<Layer>>;

// Makes the layers of a world from the last to the first, and leaves the first one's fabric in `ground`.
Layers layers_on(Ground& ground) {
  Layers layers;
  for (auto make = kLayers.rbegin(); make != kLayers.rend(); ++make) {
    auto layer = (*make)(ground);
    if (layer == nullptr) continue;
    if (auto* const fabric = layer->fabric()) ground.fabric = fabric;
    layers.push_front(std::move(layer));
  }
  return layers;
}

// What each layer that has one gives, in order.
template <class Part, class... Arguments>
std::vector<Part> parts_of(const Layers& layers, Part (Layer::*part)(Arguments...), Arguments... arguments) {
  std::vector<Part> parts;
  for (const auto& layer : layers) {
    if (auto given = (layer.get()->*part)(arguments...)) parts.push_back(std::move(given));
  }
  return parts;
}

comm::CommunicatorOptions communication_of(const WorldOptions& options, const Layers& layers) {
  auto communication = rehearse::communication_of(request_of(options));
  communication.buffered_sends = options.buffered_sends;
  communication.interceptors = parts_of(layers, &Layer::interceptor);
  return communication;
}

c10::intrusive_ptr<c10d::Store> store_of(const Machine& machine, const Layers& layers) {
  return intercepted(c10::make_intrusive<fakes::FakeStore>(machine.keys, machine.options.timeout),
                     parts_of(layers, &Layer::store_interceptor));
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
  record->checkpoints = elastic::CheckpointJournal(asked.call_sites);
  Decisions decisions(oracle, record->decisions);
  Machine machine{with_swarm(asked, decisions), decisions, scratch, *record};
  Ground ground{machine.options, machine.executor,     machine.fabric, &machine.fabric,
                machine.keys,    machine.memory.get(), scratch,        *record};
  const Layers layers = layers_on(ground);
  WorldServices services(machine.executor, *ground.fabric, communication_of(asked, layers), *record, show, &scratch);
  for (const auto& layer : layers) layer->begin(services.communicators);
  record->outcome = machine.executor.run([&](int rank) {
    FiberRankContext context(services, rank, asked.ranks, store_of(machine, layers), machine.state.generator(rank),
                             at::kCPU, exec::incarnation(machine.executor, rank));
    const operators::SeenOperators seen(parts_of(layers, &Layer::watcher_of, rank));
    body(context);
  });
  for (const auto& layer : layers) layer->leave(*record);
  services.leave();
  record->unused_groups = services.communicators.unused_groups();
  machine.leave();
  return record;
}

}  // namespace rehearse::sim
