// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/dumped_job.h"

#include <algorithm>

#include <fmt/format.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "dumps/dump_error.h"
#include "dumps/one_job.h"

namespace rehearse::sim {
namespace {

// The format of PyTorch's analyzer, so that people can compare both outputs: "0:default_pg".
std::string title_of_group(const std::string& name, const std::string& description) {
  const bool says_more = !description.empty() && description != "undefined" && description != name;
  return says_more ? fmt::format("{}:{}", name, description) : name;
}

}  // namespace

DumpedJob::DumpedJob(const std::vector<Dump>& dumps) : dumps_(dumps) {
  for (const auto& dump : dumps) add_groups(dump);
  require_one_job(dumps);
  by_rank_.resize(static_cast<std::size_t>(ranks_));
  for (const auto& dump : dumps) by_rank_[static_cast<std::size_t>(dump.rank)] = &dump;
  for (const auto& dump : dumps) add_calls(dump);
  name_groups();
}

void DumpedJob::add_groups(const Dump& dump) {
  ranks_ = std::max(ranks_, dump.rank + 1);
  for (const auto& group : dump.groups) {
    if (!group.has(dump.rank)) {
      throw DumpError(
          fmt::format("{}: is of rank {} by its name, but its group \"{}\" ({}) has {} only: right would be "
                      "a file of a job with that rank",
                      dump.file, dump.rank, group.name, group.description, describe_ranks(group.ranks)));
    }
    for (const int rank : group.ranks) ranks_ = std::max(ranks_, rank + 1);
  }
}

JobGroup& DumpedJob::group_of(const Dump& dump, const DumpedCall& call) {
  const auto* const config = dump.group_called(call.group);
  const auto ranks = config != nullptr ? config->ranks : std::vector<int>();
  const auto [entry, is_new] = known_.try_emplace({call.group, ranks}, groups_.size());
  if (is_new) {
    auto& group = groups_.emplace_back();
    group.identity = {static_cast<std::uint32_t>(entry->second), call.group, ranks};
    group.description = call.group_description;
    group.members_are_known = config != nullptr;
  }
  return groups_[entry->second];
}

void DumpedJob::add_calls(const Dump& dump) {
  for (const auto& call : dump.calls) {
    auto& group = group_of(dump, call);
    const int size = group.identity.size();
    if (call.is_message() && group.members_are_known && std::max(call.source, call.target) >= size) {
      throw DumpError(fmt::format("{}: record {} is {}:{} between ranks {} and {} of group \"{}\", which has {} ranks",
                                  dump.file, call.record_id, call.backend, call.name, call.source, call.target,
                                  call.group, size));
    }
    group.calls[dump.rank].push_back(&call);
  }
}

// Gives the groups their titles. Also decides which ranks belong to a group with unknown members: all ranks to the
// default group; to any other group, the ranks that made calls on the group.
void DumpedJob::name_groups() {
  for (auto& group : groups_) {
    auto& [id, name, ranks] = group.identity;
    name = title_of_group(name, group.description);
    if (group.members_are_known) continue;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (group.description == kDefaultGroup || group.calls.contains(rank)) ranks.push_back(rank);
    }
  }
}

std::vector<int> DumpedJob::without_dump() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (dump_of(rank) == nullptr) ranks.push_back(rank);
  }
  return ranks;
}

std::size_t DumpedJob::calls() const {
  std::size_t calls = 0;
  for (const auto& dump : dumps_) calls += dump.calls.size();
  return calls;
}

}  // namespace rehearse::sim
