// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "process/backend/checked_backend.h"

namespace rehearse::real {

// The process groups of a rank that is a process. As long as this object exists, functional collectives find these
// groups by their names.
class ProcessGroups {
 public:
  // `rank` and `size` are those of the world. Groups accept tensors of the host and of `device`. `services` must
  // outlive this object.
  ProcessGroups(int rank, int size, c10::DeviceType device, RankServices& services);
  ProcessGroups(const ProcessGroups&) = delete;
  ProcessGroups& operator=(const ProcessGroups&) = delete;
  ~ProcessGroups();

  // Like Communicators::new_group(). Blocks until all members are connected. Returns null to ranks that are not
  // members.
  c10::intrusive_ptr<c10d::ProcessGroup> new_group(const std::vector<int>& ranks, std::string_view name);

  // Like Communicators::new_local_group(). Blocks until all members are connected.
  c10::intrusive_ptr<c10d::ProcessGroup> new_local_group(const std::vector<int>& ranks, std::string_view name);

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> connect(const std::string& name, const std::string& registered,
                                                 const std::string& key, const std::vector<int>& ranks);
  void wait_until_connected(c10d::Store& store, int size);
  std::string unique_name(std::string_view name) const;

  const int rank_;
  const int size_;
  const c10::DeviceType device_;
  RankServices& services_;
  std::vector<std::string> names_;       // of all groups that new_group() made, in the order of the calls
  std::vector<std::string> registered_;  // names of the groups that contain this rank
};

}  // namespace rehearse::real
