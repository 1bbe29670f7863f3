// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <rehearse_internal/comm/communicators.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/job/rank_context_base.h>
#include <rehearse_internal/job/scratch_folders.h>
#include <rehearse_internal/job/world_groups.h>

namespace rehearse {

// Shared by the contexts of one world.
struct WorldServices {
  comm::Communicators& communicators;
  RunRecord& record;
  const ShowProgress& show;
  ScratchFolders* scratch = nullptr;  // null: RankContext::scratch_folder() makes the folders
  WorldGroups groups = {};            // for world_group()
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
