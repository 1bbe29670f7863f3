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

// What the matcher compares of a call.
struct ComparedCall {
  comm::Operation operation;
  std::uint64_t fingerprint = 0;
};

// Calls of dumps as the operations that the matcher compares. A dump knows neither the kind of a reduction nor roots
// nor splits: what it does not say, the operation leaves open, so that no two calls differ in it.
class CallsOfDumps {
 public:
  // `ranks`: of the group.
  explicit CallsOfDumps(std::size_t ranks) : ranks_(ranks) {}

  // `entries`: those of one collective, of which there are several where calls were coalesced.
  // Lives as long as this object; the same for calls that are alike, as most of a job's are.
  const ComparedCall& collective(std::span<const DumpedCall* const> entries);
  const ComparedCall& message(const DumpedCall& entry);

 private:
  comm::Operation described(std::span<const DumpedCall* const> entries);
  comm::Operation single(const DumpedCall& entry);
  // Known by its name alone: which of its tensors must be alike is not known.
  comm::Operation unknown(const DumpedCall& entry);

  const std::size_t ranks_;
  std::set<std::string> names_;                // of calls that c10d has not
  std::map<std::string, ComparedCall> known_;  // by all that they are made of
};

}  // namespace rehearse::sim
