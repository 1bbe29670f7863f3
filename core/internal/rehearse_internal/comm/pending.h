// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rehearse/exec/call_site.h>

// What is left in flight when a world has ended: for reports. Ranks are ranks of the world.
namespace rehearse::comm {

// An operation that some ranks have called and that is not complete.
struct PendingOperation {
  int rank = -1;  // who called it
  std::string group;
  std::uint64_t sequence = 0;
  std::string call;             // as Observer::call()
  std::string description;      // as Observer::describe()
  std::vector<int> waits_for;   // who is missing; empty: the transfer is under way
  bool timed_out = false;       // its own time was over: it has failed, and is here for those who never came
  bool gave_up = false;         // the program knows: a wait met TimeoutError, a future holds it, or it asked for it
  std::uint64_t record_id = 0;  // Event::record_id of the call; Event::kNotRecorded for what a buffered send left
  std::string receiver{};  // of a send: what its peer receives instead, "rank 1 receives from rank 2"; empty: nothing
  bool is_send = false;
  std::uint64_t sent_as = 0;  // of a send: record_id, that of the call also where only its buffer is left
  bool left_behind = false;   // nobody need wait for it: it was in flight when its rank met a failure of others
};

// A new_group() that not all ranks of the world have made, or a split(), merge() or shrink() that not all members have.
struct PendingGroup {
  std::string call;  // "new_group #3", "split"
  std::string name;
  std::vector<int> called_by, missing;
  exec::CallSite where{};  // of one of those who called it; empty unless captured
};

// Calls of one kind whose Work nobody ever asked: not waited for, not seen complete, no future taken. Left out are
// those that a rank's exception dropped, and those before a later call of their group whose end the rank has seen:
// collectives before any collective, messages before a barrier.
struct UnwaitedCalls {
  std::string call;  // the first one, as in PendingOperation
  struct OfRank {
    int rank = -1;
    std::uint64_t times = 0;
    std::uint64_t last = 0;  // Event::record_id
  };
  std::vector<OfRank> ranks;
  exec::CallSite where{};  // of the first one; empty unless captured
};

// Receives of one kind that got a message shorter than their tensor.
struct ShortMessages {
  std::string call;  // the first one, as in PendingOperation
  std::int64_t elements = 0;
  std::int64_t received = 0;  // of them; the others stayed as they were
  std::vector<int> ranks;     // that received, in order
  std::uint64_t times = 0;    // in all
  exec::CallSite where{};     // of the first one; empty unless captured
};

}  // namespace rehearse::comm
