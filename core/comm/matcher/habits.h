// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

namespace rehearse::comm {

// How ranks use their groups, for reports: texts, and the ranks that each text concerns.
class Habits {
 public:
  using Lines = std::map<std::string, std::set<int>>;

  // A rank has made a call on a group although it knows that an earlier call on it has timed out.
  void went_on(int rank, const std::string& group, const std::string& call);

  // A rank makes collectives of a group that several threads use. `race`: the threads do not take turns.
  void shares_with_threads(int rank, const std::string& group, bool race);

  // A message whose ends have different labels, as stages of a pipeline may. Keeps the first of each group.
  void labels_differ(int sender, const std::string& group, const std::string& send, const std::string& recv);

  // Reports show remarks() always, and notes() if the run failed.
  const Lines& remarks() const noexcept { return remarks_; }
  const Lines& notes() const noexcept { return notes_; }
  // Groups whose threads do not take turns: on them, the order of a rank's calls says nothing about its program.
  const std::set<std::string>& raced_groups() const noexcept { return raced_groups_; }

 private:
  Lines remarks_;
  Lines notes_;
  std::set<std::string> raced_groups_;
  std::set<std::string> groups_with_two_labels_;
};

}  // namespace rehearse::comm
