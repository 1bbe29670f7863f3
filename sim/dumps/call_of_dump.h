// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>

#include <rehearse_internal/comm/operation.h>

#include "dumps/dump.h"

namespace rehearse::sim {

// Calls of dumps as the operations that the matcher compares. A dump knows neither the kind of a reduction nor roots
// nor splits: what it does not say, the operation leaves open, so that no two calls differ in it.
class CallsOfDumps {
 public:
  // `ranks`: of the group.
  explicit CallsOfDumps(std::size_t ranks) : ranks_(ranks) {}

  // `entries`: those of one collective, of which there are several where calls were coalesced.
  comm::Operation collective(std::span<const DumpedCall* const> entries);
  static comm::Operation message(const DumpedCall& entry);

 private:
  comm::Operation single(const DumpedCall& entry);
  // Known by its name alone: which of its tensors must be alike is not known.
  comm::Operation unknown(const DumpedCall& entry);

  const std::size_t ranks_;
  std::set<std::string> names_;  // of calls that c10d has not
};

}  // namespace rehearse::sim
