// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <any>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/job/rank_context.h>
#include <rehearse/job/runner.h>
#include <rehearse_internal/comm/communicators.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/job/run_record.h>
#include <rehearse_internal/job/scratch_folders.h>
#include <rehearse_internal/job/world_groups.h>

namespace rehearse {

// What the contexts of one world share.
struct WorldServices {
  comm::Communicators& communicators;
  RunRecord& record;
  const ShowProgress& show;
  std::set<std::string, std::less<>> labels;  // interned: operations point at them
  ScratchFolders* scratch = nullptr;          // null: as in a process of its own
  WorldGroups groups = {};                    // to be lent
};

// RankContext where ranks are fibers, whatever moves their bytes. Made and destroyed in its rank's fiber.
class FiberRankContext final : public RankContext {
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
  at::Generator& generator() const noexcept override { return generator_; }
  at::Device device() const noexcept override { return device_; }
  VirtualTime now() const noexcept override { return exec::this_rank::now(); }
  std::filesystem::path scratch_folder() override {
    return services_.scratch != nullptr ? services_.scratch->of(rank_) : RankContext::scratch_folder();
  }
  void compute(VirtualDuration duration) override;
  void progress(std::int64_t done, std::int64_t total, std::string_view text) override;

 protected:
  void push_label(std::string_view name) override;
  void pop_label() noexcept override;
  void count_check(std::string_view what) override { ++services_.record.checks[std::string(what)]; }
  void keep_result(std::string_view name, at::Tensor value) override {
    services_.record.results.push_back({rank_, std::string(name), std::move(value)});
  }
  std::any& local_slot(const void* key) override { return locals_[key]; }

 private:
  WorldServices& services_;
  const int rank_;
  const int size_;
  const int incarnation_;
  c10::intrusive_ptr<c10d::Store> store_;
  mutable at::Generator generator_;
  const at::Device device_;
  std::vector<const std::string*> labels_;
  std::map<const void*, std::any> locals_;  // looked up by address, never walked
  Group group_;
  const WorldGroups::Entry world_{services_.groups, rank_, group_};
};

}  // namespace rehearse
