// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/exec/call_site.h>

namespace rehearse::sim {

// What ranks did with the keys of a store, for the report of a run that failed: who changed a key last, for which keys
// a rank waited in vain, and what ranks were told of keys where they asked. Plain data of a world; calls are those of
// the fiber that makes them.
class StoreHistory {
 public:
  using Keys = std::vector<std::string>;

  // `value`: as people may read it.
  void changed(const std::string& key, std::string value);
  // By a compareSet, after which the key has what was wanted: whoever gave it that first has changed it.
  void may_have_changed(const std::string& key, std::string value);
  void deleted(const std::string& key);
  void checked(const Keys& keys, bool there);
  void waits(const Keys& keys);
  void has_waited(const Keys& keys);

  // What may be why the run failed, each with the ranks that it is about. Not in a fiber: to find lines takes locks.
  std::map<std::string, std::set<int>> notes() const;

 private:
  struct Change {
    int rank = -1;
    exec::CallSite where;
    std::string value;
    bool is_deletion = false;
    std::uint64_t number = 0;
  };
  struct Answer {
    std::string key;  // the first one that was asked for
    bool there = false;
    std::uint64_t number = 0;
  };
  using Answers = std::map<int, Answer>;  // the last of each rank

  const Change* set_since(const std::string& key, std::uint64_t since, int but_by) const;
  std::string of_wait(const std::string& key) const;
  std::string of_answer(int rank, const exec::CallSite& where, const Answers& answers) const;
  const std::string* nearest(const std::string& key) const;

  std::map<std::string, Change> changes_;             // the last of each key
  std::map<std::string, std::map<int, Change>> set_;  // of each key, the last by each rank that set it
  std::map<exec::CallSite, Answers> answers_;         // by the stack that asked
  std::set<std::pair<int, std::string>> missed_;      // by rank: keys that have not come
  std::uint64_t number_ = 0;
};

}  // namespace rehearse::sim
