// SPDX-License-Identifier: BSD-3-Clause
#include "process_rank_context.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <rehearse_internal/formatting/rank_list.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <rehearse_internal/operators/noted_group.h>

#include "comm/agree/group_arguments.h"

namespace rehearse::real {

ProcessGroups::ProcessGroups(int rank, int size, c10::DeviceType device, RankServices& services)
    : rank_(rank), size_(size), device_(device), services_(services) {}

ProcessGroups::~ProcessGroups() {
  for (const auto& name : registered_) c10d::unregister_process_group(name);
}

std::string ProcessGroups::unique_name(std::string_view name) const {
  auto unique = name.empty() ? comm::name_of_new_group(names_.size()) : std::string(name);
  if (std::ranges::find(names_, unique) != names_.end()) comm::refuse_taken_name(unique);
  return unique;
}

c10::intrusive_ptr<c10d::ProcessGroup> ProcessGroups::new_group(const std::vector<int>& ranks, std::string_view name) {
  comm::check_group_ranks(ranks, size_);
  const auto unique = unique_name(name);
  const auto found = std::ranges::find(ranks, rank_);
  const bool is_member = found != ranks.end();
  services_.session.make(GroupMade{"new_group", names_.size(), std::string(name), unique, unique, ranks}, is_member);
  names_.push_back(unique);
  const auto registered = comm::numbered_name(unique, services_.named[unique]++);
  if (is_member) return connect(unique, registered, unique, ranks);
  services_.journal.add_group(unique, ranks);
  return {};
}

c10::intrusive_ptr<c10d::ProcessGroup> ProcessGroups::new_local_group(const std::vector<int>& ranks,
                                                                      std::string_view name) {
  comm::check_group_ranks(ranks, size_);
  comm::check_is_member(ranks, rank_);
  const auto given = name.empty() ? comm::name_of_local_group(ranks) : std::string(name);
  const auto made = services_.next_derived("new_local_group", given, ranks);
  services_.session.make(made, true);
  return connect(given, comm::numbered_name(given, services_.named[given]++), made.key, ranks);
}

// A rank owns its gloo connections. If the rank dropped the group or ended its body right away, it would close
// connections that other ranks are still making.
void ProcessGroups::wait_until_connected(c10d::Store& store, int size) {
  constexpr const char* kConnected = "rehearse/connected";
  constexpr std::chrono::microseconds kMost = std::chrono::milliseconds(10);
  auto there = store.add(kConnected, 1);
  for (auto pause = std::chrono::microseconds(100); there < size; pause = std::min(2 * pause, kMost)) {
    services_.session.require_running();
    std::this_thread::sleep_for(pause);
    there = store.add(kConnected, 0);
  }
}

// Several groups may have the same name. `registered`: a name that only this group has in this process. `key`: a name
// that only this group has in the job.
c10::intrusive_ptr<c10d::ProcessGroup> ProcessGroups::connect(const std::string& name, const std::string& registered,
                                                              const std::string& key, const std::vector<int>& ranks) {
  const auto identity = services_.journal.add_group(name, ranks);
  const auto store = c10::make_intrusive<c10d::PrefixStore>(key, services_.store);
  const int rank = static_cast<int>(std::ranges::find(ranks, rank_) - ranks.begin());
  auto below = services_.connect(store, rank, identity.size());
  wait_until_connected(*store, identity.size());
  const auto backend =
      c10::make_intrusive<CheckedBackend>(services_, identity, key, rank, std::move(below), services_.timeout);
  auto group = c10::make_intrusive<operators::NotedGroup>(store, rank, identity.size());
  group->setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::CUSTOM, backend);
  if (device_ != c10::kCPU) group->setBackend(device_, c10d::ProcessGroup::BackendType::CUSTOM, backend);
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  group->setGroupName(registered);
  group->setGroupDesc(name);
  c10d::register_process_group(registered, group);
  registered_.push_back(registered);
  return group;
}

ProcessRankContext::ProcessRankContext(const LaunchedProcess& process, ProcessGroups& groups, RankServices& services,
                                       RunRecord& record, const ShowProgress& show, at::Device device)
    : RankContextBase(record, show, at::detail::getDefaultCPUGenerator(), device),
      process_(process),
      groups_(groups),
      services_(services) {
  group_ = Group(groups_.new_group(ranks_below(process.size), "world"));
}

Group ProcessRankContext::new_group(const std::vector<int>& ranks, std::string_view name) {
  return Group(groups_.new_group(ranks, name));
}

Group ProcessRankContext::new_local_group(const std::vector<int>& ranks, std::string_view name) {
  return Group(groups_.new_local_group(ranks, name));
}

VirtualTime ProcessRankContext::now() const noexcept { return services_.journal.now(); }

void ProcessRankContext::spend(VirtualDuration duration) { std::this_thread::sleep_for(duration); }

}  // namespace rehearse::real
