// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/exec/call_site.h>

#include "store/forwarding_store.h"

namespace rehearse::sim {

// Records what ranks did with the keys of a store, for the report of a failed run: who changed a key last, which keys a
// rank waited for in vain, and what the store answered to check(). A world has one history. The functions record calls
// of the current fiber, and ignore calls outside of fibers.
class StoreHistory {
 public:
  using Keys = std::vector<std::string>;

  struct Value {
    bool operator==(const Value&) const = default;

    std::string text;      // in a form that people can read
    std::size_t hash = 0;  // of its bytes, because different values may have the same text
  };

  void changed(const std::string& key, Value value);
  // Call it after a compareSet() that left the key with its desired value. Counts as a change only if `value` differs
  // from the key's last known value.
  void may_have_changed(const std::string& key, Value value);
  void deleted(const std::string& key);
  void checked(const Keys& keys, bool there);
  void waits(const Keys& keys);
  void has_waited(const Keys& keys);

  // Possible causes of the failure, at most three, each with the ranks that it concerns. Must not run in a fiber,
  // because finding source lines takes locks.
  std::map<std::string, std::set<int>> notes() const;

 private:
  struct Change {
    int rank = -1;
    exec::CallSite where;
    Value value;
    bool is_deletion = false;
    std::uint64_t number = 0;
  };
  struct Answer {
    std::string key;  // the first of the keys in the call
    bool there = false;
    std::uint64_t number = 0;
  };
  using Answers = std::map<int, Answer>;  // the last answer to each rank

  const Change* set_since(const std::string& key, std::uint64_t since, int but_by) const;
  std::string of_wait(const std::string& key) const;
  std::string of_answer(int rank, const exec::CallSite& where, const Answers& answers) const;
  const std::string* nearest(const std::string& key) const;

  std::map<std::string, Change> changes_;             // the last change of each key
  std::map<std::string, std::map<int, Change>> set_;  // for each key, the last change by each rank that set it
  std::map<exec::CallSite, Answers> answers_;         // by the stack of the call
  std::set<std::pair<int, std::string>> missed_;      // by rank: keys for which it has waited in vain so far
  std::uint64_t number_ = 0;
};

// A rank's handle of the store. It records in a history what the rank does with keys. Blocks and throws as the store
// below does. May outlive its world.
class WatchedStore final : public ForwardingStore {
 public:
  WatchedStore(c10::intrusive_ptr<c10d::Store> below, std::shared_ptr<StoreHistory> history)
      : ForwardingStore(std::move(below)), history_(std::move(history)) {}

  c10::intrusive_ptr<c10d::Store> clone() override;

  using Store::set;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;
  using Store::compareSet;
  std::vector<std::uint8_t> compareSet(const std::string& key, const std::vector<std::uint8_t>& expected,
                                       const std::vector<std::uint8_t>& desired) override;
  std::vector<std::uint8_t> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  void append(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override;
  void multiSet(const std::vector<std::string>& keys, const std::vector<std::vector<std::uint8_t>>& values) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;

 private:
  template <class Wait>
  auto waiting(const std::vector<std::string>& keys, const Wait& wait);

  const std::shared_ptr<StoreHistory> history_;
};

}  // namespace rehearse::sim
