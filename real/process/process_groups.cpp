// SPDX-License-Identifier: BSD-3-Clause
#include "process_groups.h"

#include <algorithm>
#include <utility>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

namespace rehearse::real {

ProcessGroups::ProcessGroups(int rank, int size, c10::DeviceType device, RankServices& services)
    : rank_(rank), size_(size), device_(device), services_(services) {}

ProcessGroups::~ProcessGroups() {
  for (const auto& name : registered_) c10d::unregister_process_group(name);
}

// The texts of the simulation.
void ProcessGroups::check_ranks(const std::vector<int>& ranks) const {
  auto sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  const auto members = fmt::format("{{{}}}", fmt::join(ranks, ", "));
  TORCH_CHECK_VALUE(!sorted.empty(), "new_group: the list of ranks is empty");
  TORCH_CHECK_VALUE(sorted.front() >= 0 && sorted.back() < size_, "new_group: the ranks are ", members, "; a world of ",
                    size_, " has ranks 0 to ", size_ - 1);
  TORCH_CHECK_VALUE(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
                    "new_group: a rank is named twice in ", members);
}

std::string ProcessGroups::unique_name(std::string_view name) const {
  auto unique = name.empty() ? fmt::format("group{}", names_.size()) : std::string(name);
  TORCH_CHECK_VALUE(std::find(names_.begin(), names_.end(), unique) == names_.end(),
                    "new_group: there is a group of the name \"", unique, "\" already");
  return unique;
}

c10::intrusive_ptr<c10d::ProcessGroup> ProcessGroups::new_group(const std::vector<int>& ranks, std::string_view name) {
  check_ranks(ranks);
  const auto unique = unique_name(name);
  const auto place = std::find(ranks.begin(), ranks.end(), rank_);
  const bool is_member = place != ranks.end();
  services_.session.make(GroupMade{"new_group", names_.size(), std::string(name), unique, unique, ranks}, is_member);
  names_.push_back(unique);
  const auto identity = services_.journal.add_group(unique, ranks);
  if (!is_member) return {};
  const auto store = c10::make_intrusive<c10d::PrefixStore>(unique, services_.store);
  const int rank = static_cast<int>(place - ranks.begin());
  auto below = services_.make_below(store, rank, identity.size());
  const auto backend =
      c10::make_intrusive<CheckedBackend>(services_, identity, unique, rank, std::move(below), services_.timeout);
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, identity.size());
  group->setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::CUSTOM, backend);
  if (device_ != c10::kCPU) group->setBackend(device_, c10d::ProcessGroup::BackendType::CUSTOM, backend);
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  group->setGroupName(unique);
  group->setGroupDesc(unique);
  c10d::register_process_group(unique, group);
  registered_.push_back(unique);
  return group;
}

}  // namespace rehearse::real
