// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace c10d {
class ProcessGroup;
}

namespace rehearse {
class Group;
}

namespace rehearse::operators {

// Hears which process groups captured code uses: each is a constant of the graph, so something must guard it. The
// compiler listens; rehearse::Group, DeviceMesh and world_group() tell.
class GroupUse {
 public:
  // Makes `use` the one that hears of the calling fiber's code, and returns the one that did. Null: nobody.
  static GroupUse* exchange(GroupUse* use);

  // The code uses `group` (null: a group of which the rank is no member), which stands in the object at `place`. Throws
  // the capture's refusal if nothing guards it.
  virtual void used(const void* place, c10d::ProcessGroup* group) = 0;
  // The code got `group` from something that is guarded, and always gets it from there.
  virtual void derived(c10d::ProcessGroup* group) = 0;
  // The code asked for the group of all ranks, which is `world`.
  virtual void used_world(const Group& world) = 0;

 protected:
  GroupUse() = default;
  ~GroupUse() = default;
};

// Tell whoever listens, if the calling fiber's code is being captured.
void note_group_use(const void* place, c10d::ProcessGroup* group);
void note_derived_group(c10d::ProcessGroup* group);
void note_world_use(const Group& world);

}  // namespace rehearse::operators
