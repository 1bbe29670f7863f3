// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dumps/dumped_job.h"
#include "dumps/group_creations.h"
#include "dumps/group_history.h"
#include "dumps/stacks.h"
#include "report/diagnosis/diagnosis.h"
#include "report/diagnosis/headline_parts.h"
#include "report/diagnosis/standstill.h"

namespace rehearse::sim {

// The diagnosis of a job from the dumps of all its groups: the verdict, and the ranks and calls that led to it. Job and
// stacks must outlive this object.
class JobDiagnosis {
 public:
  JobDiagnosis(const DumpedJob& job, const Stacks& stacks);

  const Diagnosis& result() const noexcept { return result_; }

  // The groups with mismatches, ordered by the time of the mismatch.
  const std::vector<const GroupDiagnosis*>& mismatches() const noexcept { return mismatches_; }
  const std::list<GroupDiagnosis>& groups() const noexcept { return diagnoses_; }
  // Whether the ranks made their groups alike. If not, that is the cause of the mismatches of calls.
  const CreationDiagnosis& creations() const noexcept { return creations_; }

  // The call in which the rank waits: of several, that of the first mismatch, or else the one that it made first. Null:
  // it waits in none.
  const OpenCall* stands_in(int rank) const;
  // Others wait for these ranks, but no dump says whether the ranks came. For each rank, the reason why none does.
  const std::map<int, Unknown>& unknown() const noexcept { return unknown_; }

  // The rank's last call on any group, and its last completed call; nothing: the dump has none.
  std::optional<TitledCall> last(int rank) const;
  std::optional<TitledCall> last_completed(int rank) const;

 private:
  void stand_in_calls_of(const GroupDiagnosis& mismatch);
  void find_unknown();
  Diagnosis diagnose() const;
  Diagnosis diagnose_waits() const;
  Diagnosis diagnose_stalled() const;
  std::optional<CrossedCalls> crossed_groups() const;
  std::vector<LastCall> last_calls_of_awaited() const;
  template <class Ask>
  std::optional<TitledCall> latest(const Ask& ask) const;

  const DumpedJob& job_;
  const Stacks& stacks_;
  std::list<GroupHistory> histories_;
  std::list<GroupDiagnosis> diagnoses_;
  CreationDiagnosis creations_;
  std::map<int, const OpenCall*> stands_in_;
  std::map<int, Unknown> unknown_;
  std::vector<const GroupDiagnosis*> mismatches_;
  Diagnosis result_;
};

}  // namespace rehearse::sim
