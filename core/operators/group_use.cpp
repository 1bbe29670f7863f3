// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/operators/group_use.h>

#include <utility>

#include <rehearse_internal/exec/fiber_local.h>
#include <rehearse_internal/operators/capture_mode.h>

namespace rehearse::operators {
namespace {

struct Listener {
  GroupUse* use = nullptr;
};
const exec::FiberLocal<Listener> listener;

// The listener; null if the code is not being captured.
GroupUse* use_of_captured_code() noexcept {
  const Listener* const found = listener.find();
  if (!found || !found->use) [[likely]]
    return nullptr;
  const CaptureMode* const mode = CaptureMode::current();
  return mode && !mode->has_ended() ? found->use : nullptr;
}

}  // namespace

GroupUse* GroupUse::exchange(GroupUse* use) { return std::exchange(listener->use, use); }

void note_group_use(const void* address, c10d::ProcessGroup* group, const std::shared_ptr<const void>& mesh) {
  if (GroupUse* const use = use_of_captured_code()) [[unlikely]]
    use->used(address, group, mesh);
}

void note_group_question(c10d::ProcessGroup* group) {
  GroupUse* const use = use_of_captured_code();
  if (use != nullptr && !CaptureMode::current()->is_in_operator()) [[unlikely]]
    use->used(group, group, {});
}

void note_derived_group(c10d::ProcessGroup* group) {
  if (GroupUse* const use = use_of_captured_code()) [[unlikely]]
    use->derived(group);
}

void note_world_use(const Group& world) {
  if (GroupUse* const use = use_of_captured_code()) [[unlikely]]
    use->used_world(world);
}

}  // namespace rehearse::operators
