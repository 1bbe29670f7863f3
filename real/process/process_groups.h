// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace rehearse::real {

// Makes what carries a group's calls: of the process that is `rank` of its `size`.
using MakeBackend =
    std::function<c10::intrusive_ptr<c10d::Backend>(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size)>;

// The process groups of a rank that is a process, known to functional collectives by their names while this lives.
class ProcessGroups {
 public:
  // `rank` of the world of `size`; groups take calls for tensors of `device`.
  ProcessGroups(int rank, int size, c10::DeviceType device, MakeBackend make);
  ProcessGroups(const ProcessGroups&) = delete;
  ProcessGroups& operator=(const ProcessGroups&) = delete;
  ~ProcessGroups();

  // As Communicators::new_group(); the group's store is `store` with its name as prefix. Blocks until all members are
  // connected. Null on others.
  c10::intrusive_ptr<c10d::ProcessGroup> new_group(const std::vector<int>& ranks, std::string_view name,
                                                   const c10::intrusive_ptr<c10d::Store>& store);

 private:
  void check_ranks(const std::vector<int>& ranks) const;
  std::string unique_name(std::string_view name) const;

  const int rank_;
  const int size_;
  const c10::DeviceType device_;
  const MakeBackend make_;
  std::vector<std::string> names_;       // of all groups of the world, in order of their making
  std::vector<std::string> registered_;  // of those of which this rank is a member
};

}  // namespace rehearse::real
