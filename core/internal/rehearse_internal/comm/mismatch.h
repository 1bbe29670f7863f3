// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rehearse/exec/call_site.h>

namespace rehearse::comm {

// Calls at the same position in a group's order that should have been equal, or should have fitted together (send and
// receive, the two sides of an all-to-all edge). Ranks are ranks of the world.
struct Mismatch {
  enum class Kind { collective, point_to_point, new_group };

  struct Side {
    int rank = -1;
    std::string fingerprint;   // `allreduce(sum, float32[3, 4], cpu) label="fc1.weight"`
    exec::CallSite where;      // empty unless captured
    std::vector<int> alike{};  // all ranks known to have made this call, including `rank`
  };

  struct Field {
    std::string name;  // "op", "shape", "dtype", "device", "root", "reduce_op", "splits", "label", ...
    // The value on the first side, and the first value that differs from it; "none": a call has no such field.
    std::string first, second;
    std::vector<std::string> others{};  // further values, from the mismatch's `others`
    bool operator==(const Field&) const = default;
  };

  Kind kind = Kind::collective;
  std::string group;           // for new_group: the name on the first side, which may be empty
  std::uint64_t sequence = 0;  // in the group, from 1; for new_group: the call's number in the world, or 0 if unknown
  bool has_majority = false;   // more than half of the group's ranks made the call of `first`
  Side first;   // the majority's call; else the call of the lowest rank or, for a message, the call that arrived first
  Side second;  // the call of the lowest rank that disagrees with `first`
  std::vector<Side> others;  // calls that equal neither `first` nor `second`, ordered by their lowest rank
  // The fields that differ. The fields in which `first` and `second` differ come first, and the most telling of them
  // leads.
  std::vector<Field> fields;
};

// "new_group #1". If nobody knows the call's number in the world, as in dumps: `new_group() of group "1"`.
std::string creation_title(const Mismatch& mismatch);

// One line, as in MismatchError: `rank 3 called ... while ranks 0-2 called ... as #7 of group "world": reduce_op max,
// not sum`. Without a majority: `ranks 0 and 3 disagree at #7 of group "world": rank 0 called ..., rank 3 called ...;
// they differ in reduce_op (sum, max)`. Shows at most three calls, and at most three values of a field; then says how
// many more there are.
std::string to_string(const Mismatch& mismatch);

// Receives what the checks of communication find, for the world's report.
class CheckerSink {
 public:
  virtual ~CheckerSink() = default;

  // Called in a fiber of one of the sides. Afterwards the fiber stops the world and throws MismatchError; if the world
  // is ending already, it throws RankAborted. Must not throw or block.
  virtual void on_mismatch(const Mismatch& mismatch) = 0;
};

}  // namespace rehearse::comm
