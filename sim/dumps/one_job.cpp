// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/one_job.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "dumps/dump_error.h"

namespace rehearse::sim {
namespace {

bool has(const std::vector<int>& ranks, int rank) { return std::find(ranks.begin(), ranks.end(), rank) != ranks.end(); }

void require_one(const Dump& dump, const Dump& first, std::string_view field, std::string Dump::* value,
                 const char* what) {
  if (dump.*value == first.*value) return;
  throw DumpError(fmt::format("{}: {} is \"{}\", and {} has \"{}\": the dumps of one job have one {}", dump.file, field,
                              dump.*value, first.file, first.*value, what));
}

bool has_back_end(const Dump& dump, const std::string& back_end) {
  return std::any_of(dump.calls.begin(), dump.calls.end(),
                     [&](const DumpedCall& call) { return call.backend == back_end; });
}

// A recorder belongs to one kind of back end. Two dumps that share none recorded different calls, so neither tells what
// the other's rank did.
void require_one_back_end(const Dump& dump, const Dump& first) {
  const bool share_one = std::any_of(dump.calls.begin(), dump.calls.end(),
                                     [&](const DumpedCall& call) { return has_back_end(first, call.backend); });
  if (dump.calls.empty() || dump.file == first.file || share_one) return;
  const auto &own = dump.calls.front(), &other = first.calls.front();
  throw DumpError(fmt::format(
      "{}: profiling_name of record {} is \"{}:{}\", and in {} that of record {} is \"{}:{}\": the dumps of "
      "one job come from one back end; give those of {} or those of {}",
      dump.file, own.record_id, own.backend, own.name, first.file, other.record_id, other.backend, other.name,
      own.backend, other.backend));
}

// The members of groups, by the groups' names. Groups that result from splits may share a name, but a rank is in only
// one of them.
class Members {
 public:
  void require_same(const Dump& dump, const DumpedGroup& group) {
    auto& same_name = known_[group.name];
    for (const auto& [ranks, other] : same_name) {
      const bool is_shared = has(group.ranks, other->rank) || has(ranks, dump.rank);
      if (ranks != group.ranks && (is_shared || group.description == kDefaultGroup)) refuse(dump, group, *other, ranks);
    }
    same_name.try_emplace(group.ranks, &dump);
  }

 private:
  [[noreturn]] static void refuse(const Dump& dump, const DumpedGroup& group, const Dump& other,
                                  const std::vector<int>& ranks) {
    throw DumpError(
        fmt::format("{}: its group \"{}\" ({}) has {}, and in {} it has {}: the dumps are of different jobs", dump.file,
                    group.name, group.description, describe_ranks(group.ranks), other.file, describe_ranks(ranks)));
  }

  std::map<std::string, std::map<std::vector<int>, const Dump*>> known_;
};

}  // namespace

void require_one_job(const std::vector<Dump>& dumps) {
  const auto with_calls =
      std::find_if(dumps.begin(), dumps.end(), [](const Dump& dump) { return !dump.calls.empty(); });
  Members members;
  for (const auto& dump : dumps) {
    require_one(dump, dumps.front(), "version", &Dump::version, "version");
    require_one(dump, dumps.front(), dump.library_field, &Dump::library, "library");
    if (with_calls != dumps.end()) require_one_back_end(dump, *with_calls);
    for (const auto& group : dump.groups) {
      if (!group.name.empty()) members.require_same(dump, group);  // gloo's group has no name, and may be any group
    }
  }
}

}  // namespace rehearse::sim
