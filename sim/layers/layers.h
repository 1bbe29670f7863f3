// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <memory>

#include <rehearse/fakes/fake_store.h>
#include <rehearse/sim/world_options.h>
#include <rehearse_internal/comm/call_interceptor.h>
#include <rehearse_internal/comm/communicators.h>
#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/fakes/fake_fabric.h>
#include <rehearse_internal/job/run_record.h>
#include <rehearse_internal/job/scratch_folders.h>
#include <rehearse_internal/operators/seen_operators.h>

#include "intercepted_store.h"

// The layers of a simulated world: what stands between the ranks' calls and the fabric, between their calls of the
// store and the store, and around their operators.
namespace rehearse::sim {

class MemoryMeter;

// What a layer stands on. Outlives the layer.
struct Ground {
  const WorldOptions& options;  // with the faults that the swarm has drawn
  exec::RankExecutor& executor;
  fakes::FakeFabric& bottom;  // moves the bytes
  comm::Fabric* fabric;       // of the next layer below, which may be the bottom
  const std::shared_ptr<fakes::StoreState>& keys;
  MemoryMeter* memory;  // null: nobody counts the memory of ranks
  ScratchFolders& scratch;
  RunRecord& record;
};

// A layer overrides the functions for what must pass through it. The rest passes it by.
class Layer {
 public:
  virtual ~Layer() = default;

  // Sees the calls of ranks on groups before they are matched. Null: none.
  virtual comm::CallInterceptor* interceptor() noexcept { return nullptr; }

  // The fabric of this layer, in front of Ground::fabric. Null: none.
  virtual comm::Fabric* fabric() noexcept { return nullptr; }

  // Sees the calls of ranks on the store. Null: none.
  virtual std::shared_ptr<StoreInterceptor> store_interceptor() { return nullptr; }

  // Called in the fiber of each rank that begins. Sees the operators of the rank's main fiber; null: none.
  virtual std::shared_ptr<operators::OperatorWatcher> watcher_of(int /*rank*/) { return nullptr; }

  // Called once, right before the ranks run. `communicators` lives until the end of the world, but not as long as this.
  virtual void begin(comm::Communicators& /*communicators*/) {}

  // Called once after the run, with the outcome in the record. Adds to the record what the report says about this
  // layer.
  virtual void leave(RunRecord& /*record*/) {}
};

// Each makes one layer, or returns null if the world's options do not ask for it.
using MakeLayer = std::unique_ptr<Layer>(const Ground& ground);
MakeLayer make_store_history, make_reductions, make_state_checks, make_faults, make_call_checks, make_operator_times;

// All layers, from the ranks down: the order in which calls, transfers, calls of the store and operators meet them. A
// world makes them from the last to the first.
inline constexpr std::array kLayers = {
    make_store_history,   // records what the store answered to the ranks, so it is above the faults, which change that
    make_reductions,      // needs the state checks, which keep what it finds
    make_state_checks,    // look at what arrives at the ranks, so they are above the faults, which corrupt it
    make_faults,          // leave out, fail and hold calls, which the memory checkers must then not see
    make_call_checks,     // look at buffers until the bytes move, so they are right above the bottom
    make_operator_times,  // let time pass when the watchers above have seen the operator's results
};

}  // namespace rehearse::sim
