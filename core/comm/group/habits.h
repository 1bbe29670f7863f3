// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

namespace rehearse::comm {

// How ranks use their groups, as far as reports tell it: by text, with the ranks that it is about.
class Habits {
 public:
  using Lines = std::map<std::string, std::set<int>>;

  // A rank has made a call on a group although a call before it had timed out there, as the rank knows.
  void went_on(int rank, const std::string& group, const std::string& call);

  // A rank makes collectives of a group whose ranks make them in their main threads and in others.
  void shares_with_threads(int rank, const std::string& group);

  // Told however the run ends, and where it fails.
  const Lines& remarks() const noexcept { return remarks_; }
  const Lines& notes() const noexcept { return notes_; }

 private:
  Lines remarks_;
  Lines notes_;
};

}  // namespace rehearse::comm
