// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse_internal/job/launched.h>
#include <rehearse_internal/job/rank_context_base.h>
#include <rehearse_internal/job/world_groups.h>

#include "process/process_groups.h"

namespace rehearse::real {

// The RankContext of a rank that is a process: its body runs on the thread that called ProcessRunner::run(), and its
// clock is the machine's.
class ProcessRankContext final : public RankContextBase {
 public:
  // All references must outlive this object.
  ProcessRankContext(const LaunchedProcess& process, ProcessGroups& groups, RankServices& services, RunRecord& record,
                     const ShowProgress& show, at::Device device);

  int rank() const noexcept override { return process_.rank; }
  int size() const noexcept override { return process_.size; }
  int incarnation() const noexcept override { return process_.restart_count; }
  const Group& group() const noexcept override { return group_; }
  const c10::intrusive_ptr<c10d::Store>& store() const noexcept override { return services_.store; }
  Group new_group(const std::vector<int>& ranks, std::string_view name) override;
  Group new_local_group(const std::vector<int>& ranks, std::string_view name) override;
  VirtualTime now() const noexcept override;

 private:
  void spend(VirtualDuration duration) override;

  const LaunchedProcess& process_;
  ProcessGroups& groups_;
  RankServices& services_;
  Group group_;
  const WorldGroups::OfProcess world_{group_};
};

}  // namespace rehearse::real
