// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <rehearse/exec/time.h>
#include <rehearse/exec/wait_queue.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace rehearse::fakes {

// What all ranks' handles of one store share. Outlives no fiber that waits in it.
class StoreState {
 public:
  StoreState() = default;
  StoreState(const StoreState&) = delete;
  StoreState& operator=(const StoreState&) = delete;

 private:
  friend class FakeStore;

  std::unordered_map<std::string, std::vector<std::uint8_t>> values_;
  // Fibers by the first key that they miss; entries go with their last waiter.
  std::unordered_map<std::string, exec::WaitQueue> waiting_;
  std::uint64_t version_ = 0;  // counts changes
};

// c10d's key-value store within the process: what TCPStore is to a real job, one handle for each rank. Works below
// c10d::PrefixStore.
//
// Blocking: get() of a missing key and wait() suspend the calling fiber until the keys are there or the timeout, in
// virtual time, is over; Store::kNoTimeout (zero) waits for ever. Outside of a fiber (before the world runs) nothing
// can set a missing key, so that both throw at once. Everything else never suspends, except that looking (check(), and
// any other call that finds nothing changed since this handle last looked) is a scheduling point:
// exec::this_rank::poll().
// Threads: one, that of the executor. Ownership: handles share the state.
// Errors: c10::DistStoreError when the keys did not come in time, naming them and, of those, the ones that no rank
// has set; the store is unchanged. RankAborted when the world ends during a wait. append(),
// multiGet() and multiSet() are c10d's own, made of the calls below; the queues and listKeys() throw
// c10::NotImplementedError, as for any store without them.
class FakeStore final : public c10d::Store {
 public:
  explicit FakeStore(std::shared_ptr<StoreState> state, std::chrono::milliseconds timeout = kDefaultTimeout);

  // Another handle of the same store.
  c10::intrusive_ptr<c10d::Store> clone() override;

  using Store::set;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;

  // Sets `key` to `desired` if it is `expected`, or if it is missing and `expected` is empty. Returns what the key
  // then holds; of a key that stays missing, `expected`.
  using Store::compareSet;
  std::vector<std::uint8_t> compareSet(const std::string& key, const std::vector<std::uint8_t>& expected,
                                       const std::vector<std::uint8_t>& desired) override;

  std::vector<std::uint8_t> get(const std::string& key) override;

  // A missing key counts as 0. Returns the new value. Throws std::invalid_argument when the value is no number.
  std::int64_t add(const std::string& key, std::int64_t amount) override;

  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  std::int64_t getNumKeys() override;

  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;

 private:
  class WaitObserver;
  const std::string* first_missing(const std::vector<std::string>& keys) const;
  void wait_for(const std::string& missing, const std::vector<std::string>& keys, std::chrono::milliseconds timeout,
                std::optional<VirtualTime> deadline);
  [[noreturn]] void time_out(const std::vector<std::string>& keys, std::chrono::milliseconds timeout) const;
  void changed(const std::string& key);
  void look();

  std::shared_ptr<StoreState> state_;
  std::uint64_t looked_at_ = 0;   // version of the state
  std::size_t looks_ = 0;         // at that version
};

}  // namespace rehearse::fakes
