// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rehearse/exec/call_site.h>

// Operations that are still in flight after the end of a world, for reports. Ranks are ranks of the world.
namespace rehearse::comm {

// An operation that some ranks have called and that has not completed.
struct PendingOperation {
  int rank = -1;  // the caller
  std::string group;
  std::uint64_t sequence = 0;
  std::string call;            // as Observer::call()
  std::string description;     // as Observer::describe()
  std::vector<int> waits_for;  // the missing ranks; empty: the transfer is in flight
  bool timed_out = false;      // it has failed by its own timeout, and is listed because of the ranks that never came
  // The program knows of a timeout, from a wait() that threw, from a future or from a query, or has aborted its wait.
  bool gave_up = false;
  std::uint64_t record_id = 0;  // of the call's Event; Event::kNotRecorded for the remainder of a buffered send
  // For a send: what its peer receives instead, "rank 1 receives from rank 2"; empty: nothing.
  std::string receiver{};
  bool is_send = false;
  std::uint64_t sent_as = 0;  // for a send: the record_id of the call, even if only its buffer is left
  bool left_behind = false;   // it can probably not complete because of a failure; see WorkOwner::is_left_behind()
};

// A new_group() that some ranks of the world have not called, or a split(), merge(), shrink() or new_local_group() that
// some members of the new group have not called.
struct PendingGroup {
  std::string call;  // "new_group #3", "split"
  std::string name;
  std::vector<int> called_by, missing;
  exec::CallSite where{};  // where one of the callers made the call; empty unless captured
};

// Groups of several ranks that the ranks made at one place by new_group(), and on which nobody made a call.
struct UnusedGroups {
  std::vector<std::string> names;  // in the order in which they were made
  exec::CallSite where{};          // where one of the ranks made the first group
};

// Calls of one kind whose end the program cannot know from their Work: no wait, no check that returned true, no future.
// Excludes works that a rank's exception dropped. Also excludes a call if the rank has seen a later call of the same
// group end, which shows that the earlier call has ended: for a collective, any later collective; for a message, a
// later barrier.
struct UnwaitedCalls {
  std::string call;  // the first one, as in PendingOperation
  struct OfRank {
    int rank = -1;
    std::uint64_t times = 0;
    std::uint64_t last = 0;  // Event::record_id
  };
  std::vector<OfRank> ranks;
  exec::CallSite where{};  // the place of the first call; empty unless captured
};

// Receives of one kind that got a message shorter than their tensor.
struct ShortMessages {
  std::string call;  // the first one, as in PendingOperation
  std::int64_t elements = 0;
  std::int64_t received = 0;  // how many elements arrived; the rest of the tensor did not change
  std::vector<int> ranks;     // the receiving ranks, in order
  std::uint64_t times = 0;    // in total
  exec::CallSite where{};     // the place of the first call; empty unless captured
};

}  // namespace rehearse::comm
