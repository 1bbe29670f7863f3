// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/dumped_job.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <rehearse_internal/formatting/rank_list.h>

namespace rehearse::sim {
namespace {

// The format of PyTorch's analyzer, so that people can compare both outputs: "0:default_pg".
std::string title_of_group(const std::string& name, const std::string& description) {
  const bool says_more = !description.empty() && description != "undefined" && description != name;
  return says_more ? fmt::format("{}:{}", name, description) : name;
}

void require_one(const Dump& dump, const Dump& first, std::string_view field, std::string Dump::* value,
                 const char* what) {
  if (dump.*value == first.*value) return;
  throw DumpError(fmt::format("{}: {} is \"{}\", and {} has \"{}\": the dumps of one job have one {}", dump.file, field,
                              dump.*value, first.file, first.*value, what));
}

std::set<std::string_view> back_ends_of(const Dump& dump) {
  std::set<std::string_view> back_ends;
  for (const auto& call : dump.calls) back_ends.insert(call.backend);
  return back_ends;
}

// A recorder belongs to one kind of back end, so two dumps without a common back end recorded different calls.
void require_one_back_end(const Dump& dump, const Dump& first, const std::set<std::string_view>& of_first) {
  const bool share_one =
      std::ranges::any_of(dump.calls, [&](const DumpedCall& call) { return of_first.contains(call.backend); });
  if (dump.calls.empty() || dump.file == first.file || share_one) return;
  const auto &own = dump.calls.front(), &other = first.calls.front();
  throw DumpError(fmt::format(
      "{}: profiling_name of record {} is \"{}:{}\", and in {} that of record {} is \"{}:{}\": the dumps of "
      "one job come from one back end; give those of {} or those of {}",
      dump.file, own.record_id, own.backend, own.name, first.file, other.record_id, other.backend, other.name,
      own.backend, other.backend));
}

// c10d names some groups by a hash of their members.
bool is_name_of_members(const std::string& name) {
  constexpr std::size_t kDigits = 40;  // of SHA-1
  return name.size() == kDigits && name.find_first_not_of("0123456789abcdef") == name.npos;
}

// Compares the members of groups whose members cannot differ within a job: the default group, and groups whose names
// are hashes. c10d names all other groups by a counter, so ranks that call new_group() differently give one name to
// different groups (see diagnose_creations()).
class Members {
 public:
  void require_same(const Dump& dump, const DumpedGroup& group) {
    if (group.description != kDefaultGroup && !is_name_of_members(group.name)) return;
    const auto [known, is_new] = known_.try_emplace(group.name, &dump, &group);
    const auto& [other, same_name] = known->second;
    if (!is_new && same_name->ranks != group.ranks) refuse(dump, group, *other, same_name->ranks);
  }

 private:
  [[noreturn]] static void refuse(const Dump& dump, const DumpedGroup& group, const Dump& other,
                                  const std::vector<int>& ranks) {
    throw DumpError(
        fmt::format("{}: its group \"{}\" ({}) has {}, and in {} it has {}: the dumps are of different jobs", dump.file,
                    group.name, group.description, describe_ranks(group.ranks), other.file, describe_ranks(ranks)));
  }

  std::map<std::string, std::pair<const Dump*, const DumpedGroup*>> known_;
};

// Throws DumpError unless the dumps may come from one job. The dumps of one job have the same version, the same library
// and, if they have calls, a common back end. They agree about the members of the default group, and of each group
// whose name is a hash of its members. `dumps`: at least one.
void require_one_job(const std::vector<Dump>& dumps) {
  const auto with_calls = std::ranges::find_if(dumps, [](const Dump& dump) { return !dump.calls.empty(); });
  const auto back_ends = with_calls != dumps.end() ? back_ends_of(*with_calls) : std::set<std::string_view>();
  Members members;
  for (const auto& dump : dumps) {
    require_one(dump, dumps.front(), "version", &Dump::version, "version");
    require_one(dump, dumps.front(), dump.library_field, &Dump::library, "library");
    if (with_calls != dumps.end()) require_one_back_end(dump, *with_calls, back_ends);
    for (const auto& group : dump.groups) {
      if (!group.name.empty()) members.require_same(dump, group);  // gloo's group has no name, and may be any group
    }
  }
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
