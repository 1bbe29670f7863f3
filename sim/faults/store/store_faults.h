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

namespace rehearse::sim {

// What goes wrong with the store of a world: keys that vanish, values that are old, and a rank that cannot reach it.
// Like TCPStore of torchrun it is rank 0's. Stores may outlive their world: after close() nothing goes wrong any more,
// and the references given to the constructor are not used.
class StoreFaults {
 public:
  static constexpr int kHost = 0;

  StoreFaults(std::shared_ptr<fakes::StoreState> keys, FaultLedger& ledger, Partitions& partitions);
  void close() noexcept { ledger_ = nullptr; }

  // A fault of a rank is due at its call of the store, which the title names: "set of key "epoch"".
  using AtCall = std::function<void(FaultPlan& plan, int rank, const std::string& title)>;
  void when_due(AtCall at_call) { at_call_ = std::move(at_call); }

  // Around each call of a rank. before() waits while the rank is cut off; throws c10::DistStoreError when that takes
  // longer than `timeout` (zero: any time).
  void before(std::string_view call, const std::vector<std::string>& keys, std::chrono::milliseconds timeout);
  void after(std::string_view call, const std::vector<std::string>& keys);

  // What the call brings for the key in place of its value; nothing: the value.
  std::optional<std::vector<std::uint8_t>> stale(std::string_view call, const std::string& key);

  // The fault's keys vanish. False: there was none.
  bool lose(const Fault& fault);

 private:
  bool fits(std::size_t place, std::string_view call, const std::vector<std::string>& keys) const;
  void meet(std::string_view call, const std::vector<std::string>& keys, int rank);
  void inject(std::string_view call, const std::vector<std::string>& keys);
  void wait_for_host(int rank, std::string_view call, std::chrono::milliseconds timeout);

  std::shared_ptr<fakes::StoreState> keys_;
  FaultLedger* ledger_;
  Partitions& partitions_;
  exec::WaitQueue cut_off_;
  std::map<std::tuple<std::size_t, int, std::string_view>, std::uint64_t> calls_;  // by fault, rank and kind; "": any
  std::map<std::pair<int, std::string_view>, std::uint64_t> calls_of_ranks_;       // by rank and kind, of any key
  AtCall at_call_;
};

}  // namespace rehearse::sim
