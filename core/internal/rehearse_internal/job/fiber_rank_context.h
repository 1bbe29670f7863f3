// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <rehearse_internal/checks/rank_remarks.h>
#include <rehearse_internal/comm/communicators.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/job/rank_context_base.h>
#include <rehearse_internal/job/run_sinks.h>
#include <rehearse_internal/job/scratch_folders.h>
#include <rehearse_internal/job/world_groups.h>

namespace rehearse {

// What the contexts of one world share, and what other code on its ranks finds by exec::WorldLocal. The constructor's
// arguments must outlive it.
struct WorldServices {
  // `scratch`: null: RankContext::scratch_folder() makes the folders.
  WorldServices(exec::RankExecutor& executor, comm::Fabric& fabric, const comm::CommunicatorOptions& options,
                RunRecord& record, const ShowProgress& show, ScratchFolders* scratch = nullptr);

  // Call this after the run. Leaves in the record what the ranks have not finished, and the remarks about them.
  void leave() const;

  RunRecord& record;
  const ShowProgress& show;
  ScratchFolders* const scratch;
  KeepMismatches mismatches{record.mismatches};
  comm::Communicators communicators;
  WorldGroups groups;  // for world_group()
  checks::RankRemarks remarks;

 private:
  const exec::WorldLocal<comm::Communicators>::Lent lent_communicators_{communicators};
  const exec::WorldLocal<WorldGroups>::Lent lent_groups_{groups};
  const exec::WorldLocal<checks::RankRemarks>::Lent lent_remarks_{remarks};
  const exec::WorldLocal<compiler::Journal>::Lent lent_journal_{record.journal};
};

// RankContext for ranks that are fibers, whatever moves their bytes. Construct and destroy it in its rank's fiber.
class FiberRankContext final : public RankContextBase {
 public:
  FiberRankContext(WorldServices& services, int rank, int size, c10::intrusive_ptr<c10d::Store> store,
                   at::Generator generator, at::Device device = at::kCPU, int incarnation = 0);
  ~FiberRankContext() override { services_.communicators.release_works(); }

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  int incarnation() const noexcept override { return incarnation_; }
  const Group& group() const noexcept override { return group_; }
  const c10::intrusive_ptr<c10d::Store>& store() const noexcept override { return store_; }
  Group new_group(const std::vector<int>& ranks, std::string_view name) override;
  Group new_local_group(const std::vector<int>& ranks, std::string_view name) override;
  VirtualTime now() const noexcept override { return exec::this_rank::now(); }
  std::filesystem::path scratch_folder() override {
    return services_.scratch != nullptr ? services_.scratch->of(rank_) : RankContext::scratch_folder();
  }
  std::filesystem::path shared_folder() override {
    return services_.scratch != nullptr ? services_.scratch->shared() : RankContext::shared_folder();
  }
  void wait_for_works() { services_.communicators.wait_for_works(); }
  // Adds to the report's remarks what this rank did: RunRecord::habits.
  void note_habit(const std::string& text) { services_.record.habits[text].insert(rank_); }
  // Adds a remark about the run that is of no rank.
  void note_remark(std::string text) { services_.record.check_remarks.push_back(std::move(text)); }

 private:
  void spend(VirtualDuration duration) override;

  WorldServices& services_;
  const int rank_;
  const int size_;
  const int incarnation_;
  c10::intrusive_ptr<c10d::Store> store_;
  Group group_;
  const WorldGroups::Entry world_{services_.groups, rank_, group_};
};

}  // namespace rehearse
