// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>
#include <vector>

#include <rehearse/exec/call_site.h>

#include <rehearse_internal/job/run_record.h>

namespace rehearse::sim {

// Places in the source. A line inside a helper function says little if several stacks lead to it. Then the
// text adds the outer lines, at most two, that distinguish this stack from the others: "helper.cpp:3 in sync, from
// train.cpp:88 in train".
class Places {
 public:
  using Lines = std::vector<Place>;  // the user's own lines of a stack, innermost first

  explicit Places(const RunRecord& record);

  // Empty if nothing is known.
  Place place(const exec::CallSite& site) const;

  const Lines& lines(const exec::CallSite& site) const;

  // True if somebody asked for the place of a call whose place was not recorded.
  bool lacks_places() const { return lines_.contains({}); }

 private:
  void add(const exec::CallSite& site);

  mutable std::map<exec::CallSite, Lines> lines_;  // a cache; nobody iterates over it
  // For each line, the stacks of which it is the innermost line.
  std::map<std::string, std::vector<const Lines*>> by_innermost_;
};

}  // namespace rehearse::sim
