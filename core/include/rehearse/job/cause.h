// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/place.h>

namespace rehearse {

// A fact about how a run's trouble began or ended, as data. The headline says the same in words.
struct Cause {
  enum class Kind {
    threw,           // an exception was unwinding the ranks; `where`: the line that threw it, empty if unknown
    crashed,         // a planned fault ended the ranks
    compiles,        // the ranks compile a function, and others do not
    out_of_step,     // from `call` on, the ranks' calls are not those that they were matched with
    ended_without,   // the ranks ended and had never made `call`, in which another rank then timed out
    found_at_fault,  // a checker blames the ranks, in the headline; Report::findings is empty
    held_up,         // all ranks had made `call`, and planned faults delayed what these ranks sent, until it timed out
    cut,             // the network between the ranks and all others, or some of them, was cut
    left_out,        // the ranks never made `call`, and others did
    unmatched,       // nobody received `call`, a send of the ranks
    ended,           // the ranks ended, or did not come, before `call`, in which others wait
    ring,            // the rank waits in `call` for the next rank of a ring; one fact for each rank
    stuck,           // the ranks wait in `call` for no particular rank: for a key, a lock, a sleep, a computation
    polls,           // the ranks poll in `call`, or in an unknown one
    late,            // the ranks came to `call` after a wait for them had timed out
    failed,          // an exception left the rank's body, after a wait in `call` if that is known
  };

  Kind kind = Kind::threw;
  std::vector<int> ranks;  // ascending
  std::string call{};      // "allreduce #7 on group "world""; for out_of_step "#5 of group "world""
  Place where{};
  std::vector<int> waiting{};  // the ranks that wait for `ranks`, as far as the headline names them; ascending
};

// "threw", "out_of_step", ...
std::string_view to_string(Cause::Kind kind) noexcept;

// The inverse, for JSON; nullopt if no kind has that name.
std::optional<Cause::Kind> cause_kind_from_string(std::string_view name) noexcept;

}  // namespace rehearse
