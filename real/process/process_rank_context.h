// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <rehearse_internal/job/launched.h>
#include <rehearse_internal/job/rank_context_base.h>
#include <rehearse_internal/job/world_groups.h>

#include "process/backend/checked_backend.h"

namespace rehearse::real {

// The process groups of a rank that is a process. As long as this object exists, functional collectives find these
// groups by their names.
class ProcessGroups {
 public:
  // `rank` and `size` are those of the world. Groups accept tensors of the host and of `device`. `services` must
  // outlive this object.
  ProcessGroups(int rank, int size, c10::DeviceType device, RankServices& services);
  ProcessGroups(const ProcessGroups&) = delete;
  ProcessGroups& operator=(const ProcessGroups&) = delete;
  ~ProcessGroups();

  // Like Communicators::new_group(). Blocks until all members are connected. Returns null to ranks that are not
  // members.
  c10::intrusive_ptr<c10d::ProcessGroup> new_group(const std::vector<int>& ranks, std::string_view name);

  // Like Communicators::new_local_group(). Blocks until all members are connected.
  c10::intrusive_ptr<c10d::ProcessGroup> new_local_group(const std::vector<int>& ranks, std::string_view name);

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> connect(const std::string& name, const std::string& registered,
                                                 const std::string& key, const std::vector<int>& ranks);
  void wait_until_connected(c10d::Store& store, int size);
  std::string unique_name(std::string_view name) const;

  const int rank_;
  const int size_;
  const c10::DeviceType device_;
  RankServices& services_;
  std::vector<std::string> names_;       // of all groups that new_group() made, in the order of the calls
  std::vector<std::string> registered_;  // names of the groups that contain this rank
};

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
