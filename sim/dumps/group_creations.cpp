// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/group_creations.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "comm/agree/creation_calls.h"
#include "comm/agree/wording.h"

namespace rehearse::sim {
namespace {

// The ranks whose dumps have the same group under one name.
struct Party {
  const DumpedGroup* group = nullptr;
  std::vector<const Dump*> dumps;
};
using Parties = std::vector<Party>;

// c10d names the groups of new_group() by a counter. Orders the names as numbers, and thus the groups in the order in
// which they were made.
struct MadeEarlier {
  bool operator()(const std::string& a, const std::string& b) const {
    return std::pair(a.size(), std::string_view(a)) < std::pair(b.size(), std::string_view(b));
  }
};
using PartiesByName = std::map<std::string, Parties, MadeEarlier>;

bool is_same(const DumpedGroup& a, const DumpedGroup& b) {
  return a.ranks == b.ranks && a.description == b.description;
}

// True if the caller of new_group() described the group. The description then is the program's own name for it.
bool is_described(const DumpedGroup& group) { return !group.description.empty() && group.description != "undefined"; }

std::vector<int> ranks_of(const Party& party) {
  std::vector<int> ranks;
  for (const auto* const dump : party.dumps) ranks.push_back(dump->rank);
  return ranks;
}

PartiesByName parties_of(const DumpedJob& job) {
  PartiesByName parties;
  for (const auto& dump : job.dumps()) {
    for (const auto& group : dump.groups) {
      if (group.name.empty() || group.description == kDefaultGroup) continue;
      auto& of_name = parties[group.name];
      auto same = std::ranges::find_if(of_name, [&](const Party& party) { return is_same(*party.group, group); });
      if (same == of_name.end()) same = of_name.insert(of_name.end(), Party{&group, {}});
      same->dumps.push_back(&dump);
    }
  }
  return parties;
}

// True if a rank of `party` has the group under another name.
bool has_elsewhere(const Party& party, const DumpedGroup& group) {
  return std::ranges::any_of(party.dumps, [&](const Dump* dump) {
    return std::ranges::any_of(dump->groups,
                               [&](const DumpedGroup& own) { return own.name != group.name && is_same(own, group); });
  });
}

// In older versions of PyTorch, the groups that one split_group() makes share a name. They have no rank in common, and
// share a description; the default description contains ":split:".
bool may_be_split(const DumpedGroup& a, const DumpedGroup& b) {
  constexpr std::string_view kSplit = ":split:";
  const auto is_split = [&](const DumpedGroup& group) { return group.description.find(kSplit) != std::string::npos; };
  if (a.is_disputed || b.is_disputed || a.overlaps(b) || !is_described(a) || !is_described(b)) return false;
  return a.description == b.description || (is_split(a) && is_split(b));
}

bool disagree(const Party& a, const Party& b) {
  if (a.group->ranks != b.group->ranks) return !may_be_split(*a.group, *b.group);
  // Ranks may describe the same group differently. But if a rank of one party has the other party's group under another
  // name, the ranks made their groups in different orders.
  return is_described(*a.group) && is_described(*b.group) && (has_elsewhere(a, *b.group) || has_elsewhere(b, *a.group));
}

bool disagree(const Parties& parties) {
  for (std::size_t i = 1; i < parties.size(); ++i) {
    if (disagree(parties[0], parties[i])) return true;
  }
  return false;
}

// Counts the ranks without a dump, too, because they may belong to the majority or to the minority.
comm::Mismatch mismatch_of(const DumpedJob& job, const std::string& name, const Parties& parties) {
  std::map<int, const DumpedGroup*> passed;
  for (const auto& party : parties) {
    for (const auto* const dump : party.dumps) passed[dump->rank] = party.group;
  }
  comm::CreationCalls calls(passed.size() + job.without_dump().size(), 0);
  for (const auto& [rank, group] : passed) {
    calls.add(rank, group->ranks, is_described(*group) ? group->description : std::string(),
              [] { return exec::CallSite(); });
  }
  auto mismatch = calls.mismatch();
  mismatch.group = name;
  return mismatch;
}

// "ranks 0-1 of {0, 1}, rank 2 of {1, 2}".
std::string members_of(const Parties& parties) {
  std::string text;
  for (const auto& party : parties) {
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", describe_ranks(ranks_of(party)),
                        comm::members_text(party.group->ranks));
  }
  return text;
}

// The names of groups on which all ranks came to a call that has not ended.
std::set<std::string> stalled(const std::list<GroupDiagnosis>& groups) {
  std::set<std::string> names;
  for (const auto& group : groups) {
    for (const auto& open : group.open) {
      if (open.waits_for.empty()) names.insert(open.call->group);
    }
  }
  return names;
}

// The ranks that made calls on the group, ascending.
std::vector<int> callers_of(const JobGroup& group) {
  std::vector<int> ranks;
  for (const auto& [rank, calls] : group.calls) ranks.push_back(rank);
  return ranks;
}

bool all_have_whole_dumps(const DumpedJob& job, const JobGroup& group) {
  return std::ranges::all_of(group.identity.ranks, [&](int rank) {
    const auto* const dump = job.dump_of(rank);
    return dump != nullptr && dump->whole;
  });
}

bool waits(const GroupDiagnosis& diagnosis) {
  return std::ranges::any_of(diagnosis.open, [](const OpenCall& open) { return !open.waits_for.empty(); });
}

// Adds a remark on two groups of the same ranks if ranks wait on both, and each rank has called on only one of them.
void add_groups_in_two_orders(const DumpedJob& job, const std::list<GroupDiagnosis>& groups,
                              std::vector<std::string>& remarks) {
  std::vector<const JobGroup*> waiting;
  auto diagnosis = groups.begin();
  for (const auto& group : job.groups()) {
    if (waits(*diagnosis++) && group.members_are_known && all_have_whole_dumps(job, group)) waiting.push_back(&group);
  }
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    for (std::size_t j = i + 1; j < waiting.size(); ++j) {
      const auto &one = *waiting[i], &other = *waiting[j];
      const auto first = callers_of(one), second = callers_of(other);
      const bool are_alike = one.identity.ranks == other.identity.ranks && one.description == other.description;
      if (!are_alike || share_a_rank(first, second)) continue;
      remarks.push_back(
          fmt::format("groups \"{}\" and \"{}\" both have {}; {} called on the first alone, {} on the second. If the "
                      "program makes one such group, the ranks call new_group() in different orders",
                      one.identity.name, other.identity.name, describe_ranks(one.identity.ranks), describe_ranks(first),
                      describe_ranks(second)));
    }
  }
}

}  // namespace

CreationDiagnosis diagnose_creations(const DumpedJob& job, const std::list<GroupDiagnosis>& groups) {
  CreationDiagnosis diagnosis;
  const auto stalled_groups = stalled(groups);
  for (const auto& [name, parties] : parties_of(job)) {
    if (parties.size() < 2) continue;
    if (!diagnosis.mismatch && disagree(parties)) {
      diagnosis.mismatch = mismatch_of(job, name, parties);
      diagnosis.remarks.push_back(fmt::format(
          "{} and {} have a group \"{}\" each: {}. If all ranks make their groups alike, these dumps are of "
          "different jobs",
          parties[0].dumps.front()->file, parties[1].dumps.front()->file, name, members_of(parties)));
    } else if (stalled_groups.contains(name)) {
      diagnosis.remarks.push_back(
          fmt::format("group \"{}\" has other members on other ranks: {}. One split_group() may make such groups; "
                      "new_group() needs the same arguments on all ranks",
                      name, members_of(parties)));
    }
  }
  add_groups_in_two_orders(job, groups, diagnosis.remarks);
  return diagnosis;
}

}  // namespace rehearse::sim
