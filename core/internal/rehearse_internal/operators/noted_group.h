// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <rehearse_internal/operators/group_use.h>

namespace rehearse::operators {

// A process group whose answers count as uses of the group: in captured code, they become constants of the graph. All
// groups that Rehearse makes are of this class.
class NotedGroup final : public c10d::ProcessGroup {
 public:
  using ProcessGroup::ProcessGroup;

  int getRank() const override { return noted().ProcessGroup::getRank(); }
  int getSize() const override { return noted().ProcessGroup::getSize(); }
  const std::string getBackendName() const override { return noted().ProcessGroup::getBackendName(); }
  const std::string& getGroupName() const override { return noted().ProcessGroup::getGroupName(); }

 private:
  const NotedGroup& noted() const {
    note_group_question(const_cast<NotedGroup*>(this));
    return *this;
  }
};

}  // namespace rehearse::operators
