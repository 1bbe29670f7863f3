// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <rehearse/exec/wait_queue.h>
#include <rehearse/fakes/fake_store.h>
#include <rehearse/sim/fault.h>

#include "faults/fault_ledger.h"
#include "faults/transfers/partitions.h"
#include "layers/intercepted_store.h"

namespace rehearse::sim {

// Store faults of a world: keys vanish, gets return old values, and ranks are cut off from the store. Rank 0 hosts the
// store, as in PyTorch's env:// rendezvous without torchrun. Stores may outlive their world: after close(), no fault
// happens any more, and the object does not use the constructor's references.
class StoreFaults final : public StoreInterceptor {
 public:
  static constexpr int kHost = 0;

  StoreFaults(std::shared_ptr<fakes::StoreState> keys, FaultLedger& ledger, Partitions& partitions);
  void close() noexcept { ledger_ = nullptr; }

  // Carries out a fault that fires at a call of the store but is not about keys, such as a crash. `title` names the
  // call: "set of key "epoch"".
  using AtCall = std::function<void(FaultPlan& plan, int rank, const std::string& title)>;
  void when_due(AtCall at_call) { at_call_ = std::move(at_call); }

  // Waits while the rank is cut off, and throws c10::DistStoreError if that lasts longer than the timeout (zero: no
  // limit). Also throws what a fault at this call throws.
  void before(const StoreCall& call) override;
  void after(const StoreCall& call) override;

  // Deletes the fault's keys. False: the store had none of them.
  bool lose(const Fault& fault);

 private:
  // The old value that the call must return for the key. Nothing: the call returns the current value.
  std::optional<StoreCall::Value> stale(std::string_view call, const std::string& key);
  bool fits(std::size_t index, std::string_view call, const std::vector<std::string>& keys) const;
  void meet(std::string_view call, const std::vector<std::string>& keys, int rank);
  void inject(std::string_view call, const std::vector<std::string>& keys);
  void wait_for_host(int rank, std::string_view call, std::chrono::milliseconds timeout);

  std::shared_ptr<fakes::StoreState> keys_;
  FaultLedger* ledger_;
  Partitions& partitions_;
  exec::WaitQueue cut_off_;
  std::map<std::tuple<std::size_t, int, std::string_view>, std::uint64_t> calls_;  // by fault, rank and kind ("": any)
  std::map<std::pair<int, std::string_view>, std::uint64_t> calls_of_ranks_;       // by rank and kind, with any key
  AtCall at_call_;
};

}  // namespace rehearse::sim
