// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>

namespace rehearse {

// A folder for each rank's files, "<base>/seed-7/rank-3", and one for those of all ranks, "<base>/seed-7/shared". When
// a rank first asks for one of them, ScratchFolders removes what an earlier run left in "seed-7". A restarted rank
// finds the files of its previous incarnation.
//
// Throws std::filesystem::filesystem_error.
class ScratchFolders {
 public:
  // `base`: if empty, a new folder of this process in the system's folder for temporary files.
  ScratchFolders(const std::filesystem::path& base, std::uint64_t seed);

  std::filesystem::path of(int rank);
  std::filesystem::path shared();

  // "<base>/seed-7".
  const std::filesystem::path& folder() const noexcept { return folder_; }
  bool made(int rank) const { return made_.contains(rank); }
  // Whether any rank has asked for its folder.
  bool any() const noexcept { return begun_; }

  // Call it before another run of the world: the ranks of that run will find empty folders.
  void begin_again() noexcept {
    made_.clear();
    begun_ = false;
  }

  // Removes the folders of a run that needs no inspection. Never throws: files that cannot be removed stay.
  void remove() noexcept;

 private:
  void begin();

  const bool is_temporary_;
  const std::filesystem::path base_;
  const std::filesystem::path folder_;
  std::set<int> made_;
  bool begun_ = false;
};

}  // namespace rehearse
