// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <any>
#include <map>
#include <string>
#include <vector>

#include <rehearse/job/rank_context.h>
#include <rehearse/job/runner.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/job/launched.h>
#include <rehearse_internal/job/run_record.h>
#include <rehearse_internal/job/world_groups.h>

#include "process/process_groups.h"

namespace rehearse::real {

// RankContext of a rank that is a process: its body runs on the main thread, its clock is the machine's.
class ProcessRankContext final : public RankContext {
 public:
  // What is given outlives it.
  ProcessRankContext(const LaunchedProcess& process, ProcessGroups& groups, RankServices& services, RunRecord& record,
                     const ShowProgress& show, at::Device device);

  int rank() const noexcept override { return process_.rank; }
  int size() const noexcept override { return process_.size; }
  int incarnation() const noexcept override { return process_.restart_count; }
  const Group& group() const noexcept override { return group_; }
  const c10::intrusive_ptr<c10d::Store>& store() const noexcept override { return services_.store; }
  Group new_group(const std::vector<int>& ranks, std::string_view name) override;
  Group new_local_group(const std::vector<int>& ranks, std::string_view name) override;
  at::Generator& generator() const noexcept override { return generator_; }
  at::Device device() const noexcept override { return device_; }
  VirtualTime now() const noexcept override;
  void compute(VirtualDuration duration) override;
  void progress(std::int64_t done, std::int64_t total, std::string_view text) override;

 protected:
  void push_label(std::string_view name) override;
  void pop_label() noexcept override;
  void count_check(std::string_view what) override { ++record_.checks[std::string(what)]; }
  void keep_result(std::string_view name, at::Tensor value) override;
  std::any& local_slot(const void* key) override { return locals_[key]; }

 private:
  const LaunchedProcess& process_;
  ProcessGroups& groups_;
  RankServices& services_;
  RunRecord& record_;
  const ShowProgress& show_;
  const at::Device device_;
  mutable at::Generator generator_;
  std::vector<const std::string*> labels_;
  std::map<const void*, std::any> locals_;  // looked up by address, never walked
  Group group_;
  WorldGroups world_groups_;
  const exec::WorldLocal<WorldGroups>::Lent lent_groups_{world_groups_};
  const WorldGroups::Entry world_{world_groups_, process_.rank, group_};
};

}  // namespace rehearse::real
