// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rehearse/exec/call_site.h>

namespace rehearse::comm {

// Two calls that stand at the same place of a group's order and should have been the same, or that should have fitted
// together (send and receive, the two sides of an all-to-all edge). Ranks are ranks of the world.
struct Mismatch {
  enum class Kind { collective, point_to_point, new_group };

  struct Side {
    int rank = -1;
    std::string fingerprint;   // `allreduce(sum, float32[3, 4], cpu) label="fc1.weight"`
    exec::CallSite where;      // empty unless captured
    std::vector<int> alike{};  // every rank that is known to have made this same call, `rank` among them
  };

  struct Field {
    std::string name;           // "op", "shape", "dtype", "device", "root", "reduce_op", "splits", "label", ...
    std::string first, second;  // the first side's value, and the next that differs; "none": a call has no such field
    std::vector<std::string> others{};  // further values that `others` of the mismatch have
    bool operator==(const Field&) const = default;
  };

  Kind kind = Kind::collective;
  std::string group;           // its name; for new_group the name that the first side gave, if any
  std::uint64_t sequence = 0;  // within the group, from 1; for new_group: which new_group of the world, from 0
  bool has_majority = false;   // more than half of the group's ranks made the first call
  Side first;                  // the call of the majority; without one, that of the lowest rank
  Side second;                 // the call of the lowest rank of those that do not fit it
  std::vector<Side> others;    // calls that fit neither, by their lowest rank
  std::vector<Field> fields;   // only those that differ: first those of first and second, the most telling first
};

// One line, as in MismatchError: `rank 3 called ... where ranks 0-2 called ... as #7 of group "world": reduce_op max,
// not sum`; without a majority `ranks 0 and 3 disagree at #7 of group "world": rank 0 called ..., rank 3 called ...;
// they differ in reduce_op (sum, max)`, with as many values as there are.
std::string to_string(const Mismatch& mismatch);

// Where the checks of communication report to: the world's report.
class CheckerSink {
 public:
  virtual ~CheckerSink() = default;

  // Called in a fiber of one of the sides, before the world is stopped and MismatchError is thrown there. Must not
  // throw or block.
  virtual void on_mismatch(const Mismatch& mismatch) = 0;
};

}  // namespace rehearse::comm
