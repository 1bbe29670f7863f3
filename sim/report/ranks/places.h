// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <rehearse/exec/call_site.h>

#include <rehearse_internal/job/run_record.h>

namespace rehearse::sim {

// Where things happened, in the reader's words. A line inside of a helper says little where the run came to it from
// several lines: then those that tell the ways apart stand beside it, "helper.cpp:3 in sync, from train.cpp:88 in
// train".
class Places {
 public:
  using Lines = std::vector<std::string>;  // the user's own of a stack, innermost first

  explicit Places(const RunRecord& record);

  // Empty where nothing is known.
  std::string text(const exec::CallSite& site) const;

  const Lines& lines(const exec::CallSite& site) const;

 private:
  void add(const exec::CallSite& site);

  mutable std::map<exec::CallSite, Lines> lines_;        // looked up, never walked
  std::map<std::string, std::set<Lines>> by_innermost_;  // all ways that lead to a line
};

}  // namespace rehearse::sim
