// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <c10/util/ArrayRef.h>

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

  // For what looks at the store from outside of its ranks, and for what goes wrong with it. None of these blocks, or is
  // a scheduling point.

  bool has(const std::string& key) const { return values_.contains(key); }
  std::vector<std::string> keys() const;  // in order of name; those with values

  // The key's value vanishes, and nobody is told: who waits for it goes on waiting. False: there is none.
  bool lose(const std::string& key);

  // How long each call takes in virtual time before anything comes of it; 0: none. Looks take that of
  // exec::this_rank::poll() instead.
  void take(VirtualDuration time_of_a_call) noexcept { time_of_a_call_ = time_of_a_call; }

  // From now on the value of each key before its last change is kept.
  void keep_former_values() noexcept { keeps_former_ = true; }
  // A wait that its timeout ended: in which rank, for what ("store wait for key "id""), and how long it was to last.
  struct WaitInVain {
    int rank;
    std::string what;
    std::chrono::milliseconds timeout;
  };
  const std::vector<WaitInVain>& waits_in_vain() const noexcept { return waits_in_vain_; }

  // Null: it has never been changed, or it is not kept.
  const std::vector<std::uint8_t>* former(const std::string& key) const;

 private:
  friend class FakeStore;

  void note_change();
  void note_wait_in_vain(WaitInVain wait);
  std::vector<std::uint8_t>& to_change(const std::string& key);  // the value, which is about to be another one

  std::unordered_map<std::string, std::vector<std::uint8_t>> values_;
  std::unordered_map<std::string, std::vector<std::uint8_t>> former_;
  bool keeps_former_ = false;
  VirtualDuration time_of_a_call_{};
  std::unordered_map<std::string, std::deque<std::vector<std::uint8_t>>> queues_;  // none of them is empty
  // Fibers by the first key that they miss; entries go with their last waiter.
  std::unordered_map<std::string, exec::WaitQueue> waiting_;
  std::uint64_t version_ = 0;              // counts changes
  std::vector<WaitInVain> waits_in_vain_;  // each once
};

// c10d's key-value store within the process: what TCPStore is to a real job, one handle for each rank. Works below
// c10d::PrefixStore. Every call gives what c10d::HashStore gives; three are stricter: a multiSet() with more keys than
// values is an error, multiGet() reads all keys at one moment, and listKeys() lists in order.
//
// Values and queues are apart: a key may have both. wait() and check() are content with either; get(), getNumKeys(),
// listKeys() and deleteKey() know values only.
//
// Blocking: get() and multiGet() of missing keys, wait(), and queuePop() with `block` suspend the calling fiber until
// the keys are there or the timeout, in virtual time, is over; Store::kNoTimeout (zero) waits forever. Outside of a
// fiber (before the world runs) nothing can set a missing key, so that they throw at once. Everything else never
// suspends, except that looking (check(), and any other call that finds nothing changed since this handle last looked)
// is a scheduling point: exec::this_rank::poll().
// Threads: one, that of the executor. Ownership: handles share the state; each has a timeout of its own.
// Errors: c10::DistStoreError when the keys did not come in time, naming them and, of those, the ones that no rank
// has set; the store is unchanged. RankAborted when the world ends during a wait. watchKey() throws
// c10::NotImplementedError, as c10d's stores do.
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

  // A missing or empty key counts as 0. Returns the new value, which wraps around. Throws std::invalid_argument or
  // std::out_of_range, as std::stoll does, when the value is no number.
  std::int64_t add(const std::string& key, std::int64_t amount) override;

  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  std::int64_t getNumKeys() override;

  // All at once: no other rank sees some of them only.
  void multiSet(const std::vector<std::string>& keys, const std::vector<std::vector<std::uint8_t>>& values) override;
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override;
  void append(const std::string& key, const std::vector<std::uint8_t>& value) override;
  bool hasExtendedApi() const override { return true; }  // multiSet(), multiGet(), append()

  // In order of name, so that no decision can depend on a hash.
  std::vector<std::string> listKeys() override;

  // First in, first out. Of several ranks that wait for one element, the schedule picks who gets it.
  void queuePush(const std::string& key, const std::vector<std::uint8_t>& value) override;
  // Throws c10::DistQueueEmptyError when there is no element: without `block`, or when the key has a value, which ends
  // the wait as it does in HashStore.
  std::vector<std::uint8_t> queuePop(const std::string& key, bool block) override;
  std::int64_t queueLen(const std::string& key) override;

  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;

 private:
  class WaitObserver;
  class LookObserver;
  // What a rank waits for.
  struct Wish {
    const std::vector<std::string>& keys;
    bool or_elements;  // an element of the key's queue will do as well as a value
    const char* what;  // the call, for people
  };
  bool has(const std::string& key, bool or_elements) const;
  const std::string* first_missing(const Wish& wish) const;
  std::vector<std::string> all_missing(const Wish& wish) const;
  void wait_until_there(const Wish& wish, std::chrono::milliseconds timeout);
  void wait_for(const std::string& missing, const Wish& wish, std::chrono::milliseconds timeout,
                std::optional<VirtualTime> deadline);
  [[noreturn]] void time_out(const Wish& wish, std::chrono::milliseconds timeout) const;
  void put(const std::string& key, const std::vector<std::uint8_t>& value);
  void changed(const std::string& key);
  std::int64_t number_at(const std::string& key) const;
  void begin_call() const;
  // `call` and `keys`: what looks, and at what; both are used until it returns.
  void look(const char* call, c10::ArrayRef<std::string> keys = {});

  std::shared_ptr<StoreState> state_;
  std::uint64_t looked_at_ = 0;  // version of the state
  std::size_t looks_ = 0;        // at that version
};

}  // namespace rehearse::fakes
