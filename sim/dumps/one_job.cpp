// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/one_job.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "dumps/dump_error.h"

namespace rehearse::sim {
namespace {

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
  const bool share_one = std::any_of(dump.calls.begin(), dump.calls.end(),
                                     [&](const DumpedCall& call) { return of_first.contains(call.backend); });
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

}  // namespace

void require_one_job(const std::vector<Dump>& dumps) {
  const auto with_calls =
      std::find_if(dumps.begin(), dumps.end(), [](const Dump& dump) { return !dump.calls.empty(); });
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

}  // namespace rehearse::sim
