// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <c10/util/ArrayRef.h>

#include <rehearse/exec/oracle.h>
#include <rehearse/exec/time.h>
#include <rehearse/exec/wait_queue.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace rehearse::fakes {

// The state that all ranks' handles of one store share. It must outlive every fiber that waits for one of its keys.
class StoreState {
 public:
  StoreState() = default;
  StoreState(const StoreState&) = delete;
  StoreState& operator=(const StoreState&) = delete;

  // These functions are for faults, and for code outside of the ranks that looks at the store. None of them blocks or
  // is a scheduling point.

  bool has(const std::string& key) const { return values_.contains(key); }
  std::vector<std::string> keys() const;  // the keys with values, in order of name

  // Deletes the key's value without waking anybody: a fiber that waits for the key goes on waiting. False: the key has
  // no value.
  bool lose(const std::string& key);

  // Sets how much virtual time each call of a rank takes before it does anything; initially none. check(),
  // getNumKeys(), listKeys() and queueLen() never take this time, but exec::this_rank::poll() in them may take some.
  void take(VirtualDuration time_of_a_call) noexcept { time_of_a_call_ = time_of_a_call; }

  // From now on, before a call changes the value of a key, the store keeps a copy of the old value.
  void keep_former_values() noexcept { keeps_former_ = true; }
  // A wait that ended in its timeout, at `ended`, with its text: "store wait for key "id"".
  struct WaitInVain {
    int rank;
    std::string what;
    std::chrono::milliseconds timeout;
    VirtualTime ended;
  };
  const std::vector<WaitInVain>& waits_in_vain() const noexcept { return waits_in_vain_; }

  // A call that changes nothing, and that a fiber of a rank makes again and again with the same keys, perhaps with
  // pauses. A check() counts only if a key is missing; a get() counts only if all keys are there.
  struct Polls {
    std::string call;  // "check of"
    std::vector<std::string> keys;
    VirtualTime first{}, last{};
    VirtualDuration longest_pause{};
    std::uint64_t times = 0;

    // True if the rank seems to go on like this: it asked at least three times, or a hundred times without a pause, the
    // last time not long before `now`.
    bool go_on(VirtualTime now) const {
      return times >= (longest_pause.count() > 0 ? 3u : 100u) && now - last <= 2 * longest_pause;
    }
  };
  // The wait in a call for these keys: "store check of key "id"".
  static exec::Wait wait_in(std::string_view call, c10::ArrayRef<std::string> keys);

  // By rank and fiber_of_rank: the last such call.
  using FiberOfRank = std::pair<int, std::uint32_t>;
  const std::map<FiberOfRank, Polls>& polls() const noexcept { return polls_of_; }

  // The value that the key had before its last change. Null if the value has not changed since keep_former_values(), or
  // not since the key was last created. Deleting the key also deletes its former value.
  const std::vector<std::uint8_t>* former(const std::string& key) const;

 private:
  friend class FakeStore;

  void note_change(const std::string& key);
  void note_read(c10::ArrayRef<std::string> keys);  // a call has seen these keys, or that they are missing
  void note_read_of_all();
  bool erase(const std::string& key);  // false: the key had no value
  void note_wait_in_vain(WaitInVain wait);
  static FiberOfRank this_fiber();  // the running one
  void note_poll(const char* call, c10::ArrayRef<std::string> keys);
  void forget_polls();                                           // of the running fiber
  std::vector<std::uint8_t>& to_change(const std::string& key);  // returns the value, for the caller to change

  std::unordered_map<std::string, std::vector<std::uint8_t>> values_;
  std::unordered_map<std::string, std::vector<std::uint8_t>> former_;
  bool keeps_former_ = false;
  VirtualDuration time_of_a_call_{};
  std::unordered_map<std::string, std::deque<std::vector<std::uint8_t>>> queues_;  // never holds an empty queue
  // The waiting fibers, by the first key that they miss. The last waiter of a key removes its entry.
  std::unordered_map<std::string, exec::WaitQueue> waiting_;
  std::uint64_t version_ = 0;                    // counts changes
  std::unordered_map<std::string, int> unread_;  // changed keys that no other rank has read since, each with its rank
  std::vector<WaitInVain> waits_in_vain_;        // each once, at most 64
  std::map<FiberOfRank, Polls> polls_of_;
};

// c10d's key-value store within the process, with one handle for each rank. It does for a world what TCPStore does for
// a real job, and works below c10d::PrefixStore. Every call gives what c10d::HashStore gives, with three stricter
// rules: a multiSet() with unequal numbers of keys and values is an error, multiGet() reads all keys at one moment, and
// listKeys() lists in order.
//
// Values and queues are separate: a key may have both. wait() and check() accept either; get(), getNumKeys(),
// listKeys() and deleteKey() know only values.
//
// Blocking: get() and multiGet() of missing keys, wait(), and queuePop() with `block` suspend the calling fiber until
// the keys exist or the timeout, in virtual time, is over; Store::kNoTimeout (zero) waits forever. Outside a fiber
// (before the world runs) nothing can set a missing key, so these calls throw at once. No other call waits for a key,
// but some of them poll (exec::this_rank::poll()). wait() never does, and check() does if it finds a key missing, or
// has found its keys a thousand times since the store's last change. For the other calls that change nothing, each
// handle counts how many of them it has made since then. Such a call polls if the count is larger than the number of
// the store's keys and queues, plus one.
//
// Threads: only the executor's. Ownership: handles share the state; each has its own timeout.
// Errors: c10::DistStoreError if the keys do not come in time. Its text names all keys of the call, and says which of
// them no rank has set. The store is then unchanged. RankAborted if the world ends during a wait. watchKey() throws
// c10::NotImplementedError, as c10d's stores do.
class FakeStore final : public c10d::Store {
 public:
  explicit FakeStore(std::shared_ptr<StoreState> state, std::chrono::milliseconds timeout = kDefaultTimeout);

  // Returns another handle of the same store.
  c10::intrusive_ptr<c10d::Store> clone() override;

  using Store::set;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;

  // Sets `key` to `desired` if its value is `expected`, or if it is missing and `expected` is empty. Returns the key's
  // value afterwards, or `expected` if the key is still missing.
  using Store::compareSet;
  std::vector<std::uint8_t> compareSet(const std::string& key, const std::vector<std::uint8_t>& expected,
                                       const std::vector<std::uint8_t>& desired) override;

  std::vector<std::uint8_t> get(const std::string& key) override;

  // A missing or empty key counts as 0. Returns the new value, which wraps around. If the value is no number, throws
  // std::invalid_argument or std::out_of_range, as std::stoll does.
  std::int64_t add(const std::string& key, std::int64_t amount) override;

  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  std::int64_t getNumKeys() override;

  // Sets all keys at once: no other rank sees only some of them.
  void multiSet(const std::vector<std::string>& keys, const std::vector<std::vector<std::uint8_t>>& values) override;
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override;
  void append(const std::string& key, const std::vector<std::uint8_t>& value) override;
  bool hasExtendedApi() const override { return true; }  // multiSet(), multiGet(), append()

  // In order of name, so that no decision can depend on a hash.
  std::vector<std::string> listKeys() override;

  // First in, first out. If several ranks wait for one element, the schedule picks the rank that gets it.
  void queuePush(const std::string& key, const std::vector<std::uint8_t>& value) override;
  // Throws c10::DistQueueEmptyError if it finds no element. With `block`, this happens only if the key has a value,
  // because a value ends the wait, as in HashStore.
  std::vector<std::uint8_t> queuePop(const std::string& key, bool block) override;
  std::int64_t queueLen(const std::string& key) override;

  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;

 private:
  // Calls of one handle since the store's last change.
  struct Repeats {
    std::uint64_t version = 0;
    std::size_t times = 0;

    std::size_t count(std::uint64_t now) {
      if (std::exchange(version, now) != now) times = 0;
      return ++times;
    }
  };

  class WaitObserver;
  class StorePollObserver;
  // The condition for which a rank waits.
  struct Wish {
    const std::vector<std::string>& keys;
    bool or_elements;  // an element in the key's queue also ends the wait
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
  void begin_call(c10::ArrayRef<std::string> keys, bool writes) const;
  static Access access_to(c10::ArrayRef<std::string> keys, bool writes);
  // Counts a call that changes nothing, and polls if such calls repeat. `call` and `keys` describe the call; poll()
  // uses both until it returns.
  void poll(const char* call, c10::ArrayRef<std::string> keys = {});

  std::shared_ptr<StoreState> state_;
  Repeats polls_, finds_;  // finds_: checks that found their keys
};

}  // namespace rehearse::fakes
