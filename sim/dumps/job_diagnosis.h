// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/job/verdict.h>

#include "dumps/dumped_job.h"
#include "dumps/group_creations.h"
#include "dumps/group_history.h"
#include "dumps/stacks.h"
#include "report/ranks/cause_text.h"

namespace rehearse::sim {

// The diagnosis of a job from the dumps of all its groups: the verdict, and the ranks and calls that led to it. Job and
// stacks must outlive this object.
class JobDiagnosis {
 public:
  JobDiagnosis(const DumpedJob& job, const Stacks& stacks);

  Verdict verdict() const noexcept { return verdict_; }
  const CauseText& headline() const noexcept { return headline_; }
  const std::vector<std::string>& wait_cycle() const noexcept { return wait_cycle_; }

  // The groups with mismatches, ordered by the time of the mismatch.
  const std::vector<const GroupDiagnosis*>& mismatches() const noexcept { return mismatches_; }
  const std::list<GroupDiagnosis>& groups() const noexcept { return diagnoses_; }
  // Whether the ranks made their groups alike. If not, that is the cause of the mismatches of calls.
  const CreationDiagnosis& creations() const noexcept { return creations_; }

  // The call in which the rank waits: of several, that of the first mismatch, or else the one that it made first. Null:
  // it waits in none.
  const OpenCall* stands_in(int rank) const;
  // Others wait for these ranks, but no dump says whether the ranks came. For each rank, the reason why none does.
  const std::map<int, std::string>& unknown() const noexcept { return unknown_; }

  // The rank's last call on any group, and its last completed call; nothing: the dump has none.
  std::optional<TitledCall> last(int rank) const;
  std::optional<TitledCall> last_completed(int rank) const;

 private:
  void stand_in_calls_of(const GroupDiagnosis& mismatch);
  void find_unknown();
  void find_verdict();
  void describe_waits();
  void describe_stalled();
  std::string crossed_groups() const;
  std::string last_calls(const std::vector<int>& ranks) const;
  std::vector<int> awaited() const;
  template <class Ask>
  std::optional<TitledCall> latest(const Ask& ask) const;

  const DumpedJob& job_;
  const Stacks& stacks_;
  std::list<GroupHistory> histories_;
  std::list<GroupDiagnosis> diagnoses_;
  CreationDiagnosis creations_;
  std::map<int, const OpenCall*> stands_in_;
  std::map<int, std::string> unknown_;
  std::vector<const GroupDiagnosis*> mismatches_;
  Verdict verdict_ = Verdict::ok;
  CauseText headline_;
  std::vector<std::string> wait_cycle_;
};

}  // namespace rehearse::sim
