// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>

namespace rehearse {

// The folders of a world's ranks for files of their own: "<base>/seed-7/rank-3". Made when a rank first asks for its
// folder, and empty then, whatever an earlier run has left there. A rank that begins again finds what it wrote before.
//
// Throws std::filesystem::filesystem_error.
class ScratchFolders {
 public:
  // `base`: empty: a folder of this process below the system's one for temporary files.
  ScratchFolders(const std::filesystem::path& base, std::uint64_t seed);

  std::filesystem::path of(int rank);

  // The seed's folder; the folders of its ranks are in it.
  const std::filesystem::path& folder() const noexcept { return folder_; }
  bool made(int rank) const { return made_.contains(rank); }
  // Has any rank asked?
  bool any() const noexcept { return !made_.empty(); }

  // The world runs once more: its ranks find empty folders again.
  void begin_again() noexcept { made_.clear(); }

  // For a run that nobody need look at. Does not throw: what cannot be removed stays.
  void remove() noexcept;

 private:
  const bool is_temporary_;
  const std::filesystem::path base_;
  const std::filesystem::path folder_;
  std::set<int> made_;
};

}  // namespace rehearse
