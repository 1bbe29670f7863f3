// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

namespace c10d {
class ProcessGroup;
}

namespace rehearse {
class Group;
}

namespace rehearse::operators {

// Learns which process groups captured code uses. Each of them becomes a constant of the graph, so a guard must cover
// it. The compiler implements this interface. rehearse::Group, DeviceMesh, world_group(), the functional collectives
// and recorded c10d calls report to it.
class GroupUse {
 public:
  // Makes `use` the listener for the calling fiber's code, and returns the previous one. Null: no listener.
  static GroupUse* exchange(GroupUse* use);

  // The code uses `group`, which is stored in the object at `address`. `address` is null if an operator received the
  // group itself; `group` is null if the rank is not a member. `mesh`: what the object points to if it is a mesh. If no
  // guard covers the group, ends the capture or, if the capture cannot end there, throws the capture's error.
  virtual void used(const void* address, c10d::ProcessGroup* group, const std::shared_ptr<const void>& mesh) = 0;
  // The code got `group` from a guarded object, and will always get the same group from it.
  virtual void derived(c10d::ProcessGroup* group) = 0;
  // The code asked for the group of all ranks, which is `world`.
  virtual void used_world(const Group& world) = 0;

 protected:
  GroupUse() = default;
  ~GroupUse() = default;
};

// These functions report to the listener, if the calling fiber's code is being captured.
void note_group_use(const void* address, c10d::ProcessGroup* group, const std::shared_ptr<const void>& mesh = {});
// Captured code asks the group itself, such as for its rank. Questions from inside of an operator do not count.
void note_group_question(c10d::ProcessGroup* group);
void note_derived_group(c10d::ProcessGroup* group);
void note_world_use(const Group& world);

}  // namespace rehearse::operators
