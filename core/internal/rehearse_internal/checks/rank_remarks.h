// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/formatting/rank_list.h>

namespace rehearse::checks {

// What ranks leave behind that reports mention: each text with the ranks that it is about. Every mode lends one to its
// worlds, by exec::WorldLocal<RankRemarks>; a process that is one rank has that rank's alone.
class RankRemarks {
 public:
  using RanksByText = std::map<std::string, std::set<int>>;

  // Why other ranks may wait for `rank`. Reports of runs that failed mention it.
  void note(int rank, std::string text) { notes_[std::move(text)].insert(rank); }
  const RanksByText& notes() const noexcept { return notes_; }

  // Reports mention it however the run ends.
  void remark(int rank, std::string text) { remarks_[std::move(text)].insert(rank); }

  // "ranks 0-1: DDP #1 ... was never called": a line for each remark.
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const auto& [text, ranks] : remarks_)
      lines.push_back(describe_ranks(std::vector<int>(ranks.begin(), ranks.end())) + ": " + text);
    return lines;
  }

 private:
  RanksByText notes_, remarks_;
};

// Those of the world that runs on this thread; null outside of worlds.
inline RankRemarks* rank_remarks() noexcept { return exec::WorldLocal<RankRemarks>::find(); }

}  // namespace rehearse::checks
