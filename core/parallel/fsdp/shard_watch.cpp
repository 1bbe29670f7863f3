// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/shard_watch.h"

#include <string>
#include <utility>

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <rehearse_internal/checks/unwatched.h>
#include <rehearse_internal/checks/world_checks.h>
#include <rehearse_internal/comm/described_backend.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/operators/guarded_storages.h>

#include "checks/values/tensor_difference.h"

namespace rehearse::parallel {
namespace {

using checks::ModelState;
using checks::NamedTensor;
using checks::WorldChecks;

// While it lives, the calling fiber's operators are the check's own: no watcher, capture or StorageGuard sees them, and
// autograd does not record them.
struct OwnLook {
  const checks::Unwatched unwatched;
  const operators::UnguardedStorages unguarded;
  const at::NoGradGuard no_grad;
};

// Null if the world has no checks, or if the group is not Rehearse's.
WorldChecks* checks_of(const ShardGroup& group) {
  return group.identity() != nullptr ? checks::world_checks() : nullptr;
}

// Null unless the world asks for checks of replicas.
WorldChecks* checks_of_replicas(const ShardGroup& group) {
  auto* const checks = checks_of(group);
  return checks != nullptr && checks->automatic().replicas.value_or(false) ? checks : nullptr;
}

int rank_in_world(const ShardGroup& group) { return group.identity()->global_rank(group.rank()); }

// Describes a forward of the model to WorldChecks. `identity`: the group whose ranks are compared, which is one of the
// model's groups.
WorldChecks::Forward forward_on(const comm::GroupIdentity& identity, const ShardGroup& group) {
  static const std::vector<std::string> nothing;
  return {nothing, false, identity.ranks, fmt::format("{} on group \"{}\"", group.model(), identity.name), identity.id};
}

ModelState own_shards(const std::vector<ShardedUnit>& units, int rank) {
  std::vector<NamedTensor> tensors;
  for (const auto& unit : units) {
    for (const auto& each : unit.parameters()) {
      const auto& layout = each.layout();
      tensors.push_back(
          {each.name(), each.shard(), false, checks::RowsOfWhole{layout.sizes(), layout.first_row(rank)}});
    }
  }
  return tensors;
}

// All ranks' rows as this rank's code has used them. This rank's own rows come from its shard instead.
ModelState rows_of_all(const ShardedUnit& unit, const ShardGroup& group) {
  std::vector<NamedTensor> tensors;
  for (const auto& each : unit.parameters()) {
    const auto& layout = each.layout();
    for (int rank = 0; rank < group.size(); ++rank) {
      const auto first = layout.first_row(rank), rows = layout.rows_of(rank);
      if (rows == 0) continue;
      const auto values = rank == group.rank() ? each.shard().detach().to(each.whole().scalar_type())
                                               : each.whole().narrow(0, first, rows);
      tensors.push_back({each.name(), values, false, checks::RowsOfWhole{layout.sizes(), first}});
    }
  }
  return tensors;
}

}  // namespace

void ShardWatch::at_forward(const std::vector<ShardedUnit>& units) {
  std::erase_if(used_, [](const Used& used) { return used.forward.expired(); });
  auto* const checks = checks_of(*group_);
  if (checks == nullptr) return;
  has_trained_ = true;
  const int rank = rank_in_world(*group_);
  if (const auto* const replicas = group_->replicas_identity())
    checks->at_sharded_forward(rank, own_shards(units, group_->rank()), forward_on(*replicas, *group_), true);
  checks->draws_at_forward(rank, forward_on(*group_->identity(), *group_));
}

void ShardWatch::at_use(const std::shared_ptr<const void>& forward, const ShardedUnit& unit) {
  if (checks_of_replicas(*group_) == nullptr) return;
  const OwnLook own;
  Used used{forward, &unit, unit.version(), {}};
  for (const auto& each : unit.parameters()) used.rows.push_back(checks::copied(each.shard()));
  used_.push_back(std::move(used));
}

void ShardWatch::after_use(const ShardedUnit& unit) const {
  auto* const checks = checks_of_replicas(*group_);
  if (checks == nullptr || !unit.is_whole() || !at::GradMode::is_enabled()) return;
  const OwnLook own;
  checks->at_sharded_forward(rank_in_world(*group_), rows_of_all(unit, *group_),
                             forward_on(*group_->identity(), *group_), false);
}

void ShardWatch::at_backward(const void* forward) const {
  if (checks_of_replicas(*group_) == nullptr) return;
  for (const auto& used : used_) {
    if (used.forward.lock().get() == forward && used.unit->version() == used.version) compare(used);
  }
}

void ShardWatch::compare(const Used& used) const {
  const OwnLook own;
  const auto& parameters = used.unit->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& shard = parameters[i].shard();
    if (checks::same_values(shard, used.rows[i])) continue;
    const int rank = rank_in_world(*group_);
    const auto first = parameters[i].layout().first_row(group_->rank());
    checks_of_replicas(*group_)->found(
        {fmt::format(
             "rank {} has another \"{}[{}:{}]\" of {} {} in backward than in the forward that it belongs to ({})", rank,
             parameters[i].name(), first, first + shard.size(0), group_->model(), used.unit->text(),
             checks::difference_text(shard, used.rows[i])),
         {rank},
         {"the change counted no version, as writes through data() do not; make an optimizer's step after "
          "backward()"}});
    return;
  }
}

void ShardWatch::at_end(const std::vector<ShardedUnit>& units) const {
  auto* const checks = checks_of(*group_);
  const auto* const replicas = group_->replicas_identity();
  if (checks == nullptr || !has_trained_ || replicas == nullptr) return;
  checks->at_sharded_end(rank_in_world(*group_), own_shards(units, group_->rank()), forward_on(*replicas, *group_));
}

}  // namespace rehearse::parallel
