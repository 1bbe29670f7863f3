// SPDX-License-Identifier: BSD-3-Clause
// The functions of RankBackend that concern the group: its time limits, its shutdown, its hook, and the groups made
// from it.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/comm/rank_backend.h>

#include "comm/group/group_world.h"
#include "comm/work/coalesced_work.h"
#include "derived_group.h"
#include "timeout_extension.h"

namespace rehearse::comm {

void RankBackend::extend_timeout_once(std::chrono::milliseconds duration) {
  check_extension(duration);
  if (extension_ == nullptr) extension_ = std::make_unique<TimeoutExtension<RankWork>>();
  extension_->add(duration);
}

// `global_ranks`: ranks of the world, including the calling rank.
auto RankBackend::derive(const char* call, const std::vector<int>& global_ranks, const Options& options,
                         const GroupIdentity* parent) const -> BackendPtr {
  const int self = identity().global_rank(rank_);
  auto state = group_->world().groups.derive(call, options.group_name, global_ranks, self, parent);
  const auto group_rank = std::ranges::find(global_ranks, self) - global_ranks.begin();
  auto backend = c10::make_intrusive<RankBackend>(std::move(state), static_cast<int>(group_rank), options.timeout);
  backend->setGroupUid(options.group_name);
  backend->setGroupDesc(options.group_desc);
  return backend;
}

auto RankBackend::split(const c10::intrusive_ptr<c10d::Store>&, const std::vector<int>& ranks,
                        const c10::intrusive_ptr<Options>& options) -> BackendPtr {
  group_->check_caller(rank_);
  check_members("split", ranks, size_);
  if (std::ranges::find(ranks, rank_) == ranks.end()) return {};
  const auto own_options = options_or_named(options, derived_name(identity().name, "split", ranks));
  std::vector<int> global_ranks;
  for (const int rank : ranks) global_ranks.push_back(identity().global_rank(rank));
  return derive("split", global_ranks, *own_options, &identity());
}

auto RankBackend::merge(const c10::intrusive_ptr<c10d::Store>& store, const c10::intrusive_ptr<Options>& options,
                        const int& rank, const int& size) -> BackendPtr {
  group_->check_caller(rank_);
  TORCH_CHECK_VALUE(store != nullptr, "rehearse::merge: it needs a store, through which the ranks find each other");
  TORCH_CHECK_VALUE(rank >= 0 && rank < size, "rehearse::merge: rank ", rank, " is out of range; a group of ", size,
                    " has ranks 0 to ", size - 1);
  const auto own_options = options_or_named(options, identity().name + ":merge");
  const auto key = [&](int member) { return fmt::format("merge/{}/{}", own_options->group_name, member); };
  store->set(key(rank), std::to_string(identity().global_rank(rank_)));
  std::vector<int> global_ranks;
  for (int member = 0; member < size; ++member) {
    const int global_rank = std::stoi(store->get_to_str(key(member)));
    TORCH_CHECK_VALUE(std::ranges::find(global_ranks, global_rank) == global_ranks.end(), "rehearse::merge: rank ",
                      global_rank,
                      " of the world is in the merged group twice, the second "
                      "time as rank ",
                      member, " of ", size);
    global_ranks.push_back(global_rank);
  }
  return derive("merge", global_ranks, *own_options, nullptr);
}

auto RankBackend::shrink(const std::vector<std::int64_t>& ranks_to_exclude, int flags,
                         const c10::intrusive_ptr<Options>& options) -> BackendPtr {
  group_->check_caller(rank_);
  const auto stay = ranks_that_stay(ranks_to_exclude, rank_, size_);
  const bool aborts = is_abort(flags);
  std::vector<int> global_ranks;
  for (const int rank : stay) global_ranks.push_back(identity().global_rank(rank));
  if (aborts) abort();
  const auto own_options = options_or_named(options, derived_name(identity().name, "shrink", stay));
  return derive("shrink", global_ranks, *own_options, &identity());
}

auto RankBackend::companion(const std::string& name) -> BackendPtr {
  group_->check_caller(rank_);
  auto& own = companions_[name];
  if (own == nullptr) {
    own = c10::make_intrusive<RankBackend>(group_->world().groups.companion(*group_, name), rank_, timeout());
    own->setGroupUid(name);
    own->setGroupDesc(name);
  }
  return own;
}

void RankBackend::abort() {
  coalesced_.reset();
  gathered_.clear();
  gathered_at_.clear();
  group_->member(rank_).abort();
}

void RankBackend::shutdown() { group_->member(rank_).shut_down(); }

c10d::ErrorType RankBackend::getError() {
  const auto* const member = group_->find_member(rank_);
  return member != nullptr ? member->error() : c10d::ErrorType::SUCCESS;
}

void RankBackend::registerOnCompletionHook(std::function<void(std::shared_ptr<c10d::WorkInfo>)>&& hook) {
  TORCH_CHECK(onCompletionHook_ == nullptr, "rehearse OnCompletion hook already registered");
  TORCH_CHECK(hook != nullptr, "rehearse::registerOnCompletionHook: the hook is empty");
  onCompletionHook_ = hook;  // for hasHooks()
  group_->member(rank_).set_hook(std::move(hook));
}

void RankBackend::waitForPendingWorks() {
  group_->check_caller(rank_);
  group_->member(rank_).wait_for_pending_works();
}

}  // namespace rehearse::comm
