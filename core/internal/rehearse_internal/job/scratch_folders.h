// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>

namespace rehearse {

// A folder for each rank's files: "<base>/seed-7/rank-3". When a rank first asks for its folder, ScratchFolders makes
// it, and removes the files that an earlier run left there. A restarted rank finds the files of its previous
// incarnation.
//
// Throws std::filesystem::filesystem_error.
class ScratchFolders {
 public:
  // `base`: if empty, a new folder of this process in the system's folder for temporary files.
  ScratchFolders(const std::filesystem::path& base, std::uint64_t seed);

  std::filesystem::path of(int rank);

  // "<base>/seed-7".
  const std::filesystem::path& folder() const noexcept { return folder_; }
  bool made(int rank) const { return made_.contains(rank); }
  // Whether any rank has asked for its folder.
  bool any() const noexcept { return !made_.empty(); }

  // Call it before another run of the world: the ranks of that run will find empty folders.
  void begin_again() noexcept { made_.clear(); }

  // Removes the folders of a run that needs no inspection. Never throws: files that cannot be removed stay.
  void remove() noexcept;

 private:
  const bool is_temporary_;
  const std::filesystem::path base_;
  const std::filesystem::path folder_;
  std::set<int> made_;
};

}  // namespace rehearse
