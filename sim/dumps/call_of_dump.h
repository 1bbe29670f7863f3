// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

#include <rehearse_internal/comm/operation.h>

#include "dumps/dump.h"

namespace rehearse::sim {

// The part of a call that the matcher compares.
struct ComparedCall {
  comm::Operation operation;
  std::uint64_t fingerprint = 0;
};

// Turns the calls of dumps into the operations that the matcher compares. A dump does not tell reduce ops, roots and
// splits; the operation leaves them open, so that no two calls differ in them.
class CallsOfDumps {
 public:
  // `ranks`: the size of the group.
  explicit CallsOfDumps(std::size_t ranks) : ranks_(ranks) {}

  // `entries`: the entries of one collective; coalesced calls have several. The result lives as long as this object.
  // Most calls of a job are equal, and equal calls share one result.
  const ComparedCall& collective(std::span<const DumpedCall* const> entries);
  const ComparedCall& message(const DumpedCall& entry);

 private:
  comm::Operation described(std::span<const DumpedCall* const> entries);
  comm::Operation single(const DumpedCall& entry);
  // Describes the call only by its name, because nobody knows which of its tensors must agree.
  comm::Operation unknown(const DumpedCall& entry);

  const std::size_t ranks_;
  std::set<std::string> names_;                // the labels of the calls that unknown() describes
  std::map<std::string, ComparedCall> known_;  // by the text that add_key() makes of their entries
};

}  // namespace rehearse::sim
