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

// Remarks of ranks for reports: each text with the ranks that it concerns. If each rank is a process, an object has
// only its own rank's remarks.
class RankRemarks {
 public:
  using RanksByText = std::map<std::string, std::set<int>>;

  // Adds a reason why other ranks may wait for `rank`. Reports of failed runs show it.
  void note(int rank, std::string text) { notes_[std::move(text)].insert(rank); }
  const RanksByText& notes() const noexcept { return notes_; }

  // Adds a remark that reports show however the run ends.
  void remark(int rank, std::string text) { remarks_[std::move(text)].insert(rank); }

  // `rank` asked for a check of its replicas, gradients or steps. If they were wrong, the check would say so.
  void note_checked(int rank) { checked_.insert(rank); }
  bool has_checked(int rank) const { return checked_.contains(rank); }

  // "ranks 0-1: DDP #1 ... was never called": one line per remark.
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const auto& [text, ranks] : remarks_)
      lines.push_back(describe_ranks(std::vector<int>(ranks.begin(), ranks.end())) + ": " + text);
    return lines;
  }

 private:
  RanksByText notes_, remarks_;
  std::set<int> checked_;
};

// The remarks of the world that runs on this thread; null outside of worlds.
inline RankRemarks* rank_remarks() noexcept { return exec::WorldLocal<RankRemarks>::find(); }

}  // namespace rehearse::checks
