// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/job/world_groups.h>

#include <stdexcept>

#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/operators/group_use.h>

namespace rehearse {

const Group* WorldGroups::find() {
  if (!exec::this_rank::is_fiber()) return of_process_;  // a process that is one rank has no fibers
  const WorldGroups* const groups = exec::WorldLocal<WorldGroups>::find();
  if (groups == nullptr) return nullptr;
  const auto found = groups->of_rank_.find(exec::this_rank::rank());
  return found != groups->of_rank_.end() ? found->second : nullptr;
}

const Group& world_group() {
  const Group* const world = WorldGroups::find();
  if (world == nullptr) {
    throw std::logic_error(
        "world_group() is called outside of a rank's body, where there is no world; call it there, "
        "or pass the group that you have");
  }
  operators::note_world_use(*world);
  return *world;
}

}  // namespace rehearse
