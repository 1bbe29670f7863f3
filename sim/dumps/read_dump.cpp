// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/read_dump.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/exec/check.h>

#include "comm/agree/group_arguments.h"

namespace rehearse::sim {
namespace {

std::string version_of(const Field& whole) {
  const auto field = whole.at("version");
  auto version = field.text();
  if (minor_version(version) < 0)
    field.wrong(fmt::format("a version from {0}.0 to {0}.{1}", kDumpMajor, kDumpMinorMost));
  return version;
}

// Parses "[0, 1]", as c10d writes it, or a list.
std::vector<int> listed_ranks(const Field& field) {
  std::vector<int> ranks;
  if (field.is_list()) {
    field.each([&](const Field& rank) { ranks.push_back(static_cast<int>(rank.integer(0, kDumpedRanksMost - 1))); });
    return ranks;
  }
  const auto text = field.text();
  const auto wrong = [&] { field.wrong("ranks in brackets, as in \"[0, 1]\""); };
  if (!text.starts_with('[') || !text.ends_with(']')) wrong();
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size() - 1;
  while (at != end) {
    int rank = -1;
    const auto [next, error] = std::from_chars(at, end, rank);
    if (error != std::errc() || rank < 0 || rank >= kDumpedRanksMost) wrong();
    ranks.push_back(rank);
    at = next;
    while (at != end && (*at == ',' || *at == ' ')) ++at;
  }
  return ranks;
}

std::vector<int> ranks_of(const Field& field) {
  auto ranks = listed_ranks(field);
  std::set<int> once;
  for (const int rank : ranks) {
    if (!once.insert(rank).second) field.wrong(fmt::format("each rank once, and rank {} is there twice", rank));
  }
  return ranks;
}

// Leaves out groups without ranks: a back end that registers no members leaves one such group, without a name.
std::vector<DumpedGroup> groups_of(const Field& whole) {
  std::vector<DumpedGroup> groups;
  if (!whole.has("pg_config")) return groups;
  whole.at("pg_config").each_entry([&](const std::string& key, const Field& field) {
    DumpedGroup group{key, field.at("desc").text(), ranks_of(field.at("ranks"))};
    if (!group.ranks.empty()) groups.push_back(std::move(group));
  });
  return groups;
}

// Reads a number of `pg_status`. A dump in JSON has these numbers as texts.
std::int64_t number_of(const Field& field) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (!field.is_text()) return field.integer(-1, kMost);
  const auto text = field.text();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) field.wrong("a number");
  return value;
}

void read_status(const Field& whole, Dump& dump) {
  if (!whole.has("pg_status")) return;
  whole.at("pg_status").each_entry([&](const std::string& key, const Field& status) {
    std::int64_t group = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), group);
    if (error != std::errc() || end != key.data() + key.size()) status.wrong("the status of a group with a number");
    if (status.has("last_enqueued_collective")) dump.enqueued[group] = number_of(status.at("last_enqueued_collective"));
  });
}

// Finds out whether the dump lacks calls: the recorder keeps only the latest ones, and a dump may be limited to calls
// that are not complete.
void settle(Dump& dump) {
  std::ranges::stable_sort(dump.calls,
                           [](const DumpedCall& a, const DumpedCall& b) { return a.record_id < b.record_id; });
  std::map<std::int64_t, std::int64_t> last;  // by group
  for (std::size_t i = 0; i < dump.calls.size(); ++i) {
    const auto& call = dump.calls[i];
    auto& number = last.try_emplace(call.group_id, 0).first->second;
    number = std::max<std::int64_t>(
        {number, static_cast<std::int64_t>(call.collective_seq), static_cast<std::int64_t>(call.p2p_seq)});
    dump.filtered = dump.filtered || (i > 0 && call.record_id != dump.calls[i - 1].record_id + 1);
  }
  bool all_enqueued = true;
  for (const auto& [group, number] : dump.enqueued) {
    const auto seen = last.find(group);
    all_enqueued = all_enqueued && number <= (seen != last.end() ? seen->second : 0);
    dump.filtered = dump.filtered || (seen != last.end() && number > seen->second);
  }
  const bool from_first = dump.calls.empty() || dump.calls.front().record_id == 0;
  dump.whole = from_first && all_enqueued && !dump.filtered;
}

void read_calls(const Field& entries, Dump& dump, Stacks& stacks) {
  std::map<std::int64_t, std::size_t> index_of;  // by record_id
  entries.each([&](const Field& entry) {
    dump.calls.push_back(read_call(entry, stacks));
    const auto [known, is_new] = index_of.try_emplace(dump.calls.back().record_id, index_of.size());
    if (!is_new) entry.at("record_id").wrong(fmt::format("each record once, and entry {} is that one", known->second));
  });
}

}  // namespace

const DumpedGroup* Dump::group_called(const std::string& name) const {
  const auto found = std::ranges::find_if(groups, [&](const auto& group) { return group.name == name; });
  return found == groups.end() ? nullptr : &*found;
}

int minor_version(const std::string& version) {
  const auto prefix = fmt::format("{}.", kDumpMajor);
  if (!version.starts_with(prefix)) return -1;
  int minor = -1;
  const char* const end = version.data() + version.size();
  const auto [at, error] = std::from_chars(version.data() + prefix.size(), end, minor);
  return error == std::errc() && at == end ? minor : -1;
}

Dump read_dump(const Field& whole, std::string file, int rank, Stacks& stacks) {
  Dump dump;
  dump.file = std::move(file);
  dump.rank = rank;
  dump.version = version_of(whole);
  if (whole.has("rank") && whole.at("rank").integer(0, kDumpedRanksMost - 1) != rank)
    whole.at("rank").wrong(fmt::format("{}, as the file's name says", rank));
  for (const auto* const key : {"comm_lib_version", "nccl_version"}) {  // older versions have the second
    if (!whole.has(key)) continue;
    dump.library = whole.at(key).text();
    dump.library_field = key;
  }
  dump.groups = groups_of(whole);
  read_status(whole, dump);
  if (whole.has("entries")) read_calls(whole.at("entries"), dump, stacks);
  settle(dump);
  return dump;
}

namespace {

// Returns a name for each group, by index, so that no rank has two groups of one name. A rank of a simulation may be in
// several groups of the same name, and its calls give the index of their group. The versions that ranks made of a
// disputed group share a name, because explain compares them. `makers`: by group, the ranks that have it.
std::vector<std::string> names_apart(const std::vector<DumpedGroup>& groups,
                                     const std::vector<std::vector<int>>& makers) {
  std::map<std::string, std::vector<int>> disputants;  // by name: the ranks that have a version of a disputed group
  for (std::size_t i = 0; i < groups.size(); ++i) {
    auto& ranks = disputants[groups[i].name];
    if (groups[i].is_disputed) ranks.insert(ranks.end(), makers[i].begin(), makers[i].end());
  }
  const auto all_of = [&](std::size_t i) -> const auto& {
    return groups[i].is_disputed ? disputants[groups[i].name] : makers[i];
  };
  std::map<std::string, std::vector<std::size_t>> given;  // by given name: the indices of the groups so far
  std::vector<std::string> names;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto is_taken_by = [&](std::size_t other) {
      const bool are_versions =
          groups[i].is_disputed && groups[other].is_disputed && groups[i].name == groups[other].name;
      return are_versions ? share_a_rank(makers[i], makers[other]) : share_a_rank(all_of(i), all_of(other));
    };
    std::size_t number = 0;
    std::string name = groups[i].name;
    while (std::ranges::any_of(given[name], is_taken_by)) name = comm::numbered_name(groups[i].name, ++number);
    for (const auto other : given[name])
      REHEARSE_CHECK(!share_a_rank(makers[i], makers[other]), name);  // else a rank would have two groups of one name
    given[name].push_back(i);
    names.push_back(std::move(name));
  }
  return names;
}

// In such a file every call is named as NCCL's, because the tools accept no other. Returns what carried the tensors of
// the run: "simulation", "gloo"; empty if the file does not say.
std::string transport_of(const Field& whole) {
  if (!whole.has("run") || !whole.at("run").has("transport")) return "";
  const auto text = whole.at("run").at("transport").text();
  return text.substr(0, text.find(' '));
}

}  // namespace

bool is_of_all_ranks(const Field& whole) { return whole.has("groups") && whole.has("entries"); }

std::vector<Dump> read_dumps_of_all_ranks(const Field& whole, const std::string& file, Stacks& stacks) {
  const auto version = version_of(whole);
  std::vector<DumpedGroup> groups;
  std::vector<std::vector<int>> makers;  // by group: the ranks that have it
  whole.at("groups").each([&](const Field& group) {
    const bool is_disputed = group.has("made_by");
    groups.push_back({group.at("name").text(), group.at("desc").text(), ranks_of(group.at("ranks")), is_disputed});
    makers.push_back(is_disputed ? ranks_of(group.at("made_by")) : groups.back().ranks);
  });
  const auto names = names_apart(groups, makers);
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].name = names[i];
  const auto transport = transport_of(whole);
  std::vector<Dump> dumps;
  const auto of_ranks = whole.at("entries");
  if (of_ranks.items().empty()) of_ranks.wrong("a list of entries for each rank");
  of_ranks.each([&](const Field& entries) {
    Dump dump;
    dump.file = file;
    dump.rank = static_cast<int>(dumps.size());
    dump.version = version;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (std::ranges::find(makers[i], dump.rank) == makers[i].end()) continue;
      dump.groups.push_back(groups[i]);
    }
    read_calls(entries, dump, stacks);
    for (auto& call : dump.calls) {
      const auto index = static_cast<std::size_t>(call.group_id);
      if (index < groups.size()) call.group = groups[index].name;
      if (!transport.empty()) call.backend = transport;
    }
    settle(dump);
    dumps.push_back(std::move(dump));
  });
  return dumps;
}

}  // namespace rehearse::sim
