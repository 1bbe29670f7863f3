// SPDX-License-Identifier: BSD-3-Clause
#include "report/diagnosis/remarks.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/formatting/name_list.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "options/world_rows.h"
#include "report/diagnosis/compile_diagnosis.h"
#include "schedule/units.h"

namespace rehearse::sim {
namespace {

// For example " (5 times each)"; empty if each rank made the call once.
std::string times_text(const std::vector<comm::UnwaitedCalls::OfRank>& ranks) {
  std::uint64_t all = 0;
  for (const auto& rank : ranks) all += rank.times;
  if (all == ranks.size()) return "";
  const auto as_first = [&](const auto& rank) { return rank.times == ranks.front().times; };
  const bool alike = ranks.size() > 1 && std::ranges::all_of(ranks, as_first);
  return alike ? fmt::format(" ({} times each)", ranks.front().times) : fmt::format(" ({} times in all)", all);
}

std::string remark_of(const comm::ShortMessages& messages, const Places& places) {
  const auto where = places.place(messages.where).at();
  const bool each_once = messages.times == messages.ranks.size();
  return fmt::format(
      "{} of {}{} got {} of {} elements{}: the other elements keep their old values, as with Gloo; NCCL needs a send "
      "and a receive of equal sizes",
      messages.call, describe_ranks(messages.ranks), where, messages.received, messages.elements,
      each_once ? "" : fmt::format(" ({} times in all)", messages.times));
}

std::string remark_of(const comm::UnusedGroups& groups, const Places& places) {
  const auto where = places.place(groups.where).at();
  std::vector<std::string> names;
  for (const auto& name : groups.names) names.push_back('"' + name + '"');
  return fmt::format("no rank made a call on the group{} {}{}{}", names.size() == 1 ? "" : "s", some_names(names),
                     where.empty() ? "" : ", made", where);
}

// Adds calls that ranks had in flight when other calls failed, and for which nobody waited any more. Such calls are
// only a remark, because the record does not tell a forgotten wait from a call that a program left on purpose after a
// failure.
void add_left_behind(const RunRecord& record, const std::string& headline, std::vector<std::string>& remarks) {
  struct Left {
    std::set<int> ranks;
    std::vector<int> missing;
  };
  std::map<std::string, Left> calls;
  for (const auto& call : record.pending) {
    const auto is_crashed = [&](int rank) { return record.crashed.contains(rank); };
    const bool is_plain = std::ranges::all_of(call.waits_for, is_crashed);
    if (!call.left_behind || call.gave_up || call.waits_for.empty() || is_plain) continue;
    if (headline.find(call.call) != std::string::npos) continue;
    auto& left = calls[call.call];
    left.ranks.insert(call.rank);
    left.missing = call.waits_for;
  }
  for (const auto& [call, left] : calls) {
    remarks.push_back(fmt::format(
        "{} of {} was still in flight when a call failed: {} never came to it, and nobody waited for it", call,
        describe_ranks(std::vector<int>(left.ranks.begin(), left.ranks.end())), describe_ranks(left.missing)));
  }
}

std::string text_of(const exec::StaticThread& thread, const Places& places) {
  const auto where = places.place(thread.where).at();
  return fmt::format(
      "rank {} started a thread{} while it initialised a static variable. All ranks of a simulation share that "
      "variable, but the thread belongs to this rank and ends with this world. Keep the object in ctx.local<T>()",
      thread.rank, where);
}

constexpr std::size_t kPlacesShown = 3;

// For example ": 16MiB at model.cpp:12 in forward, 8MiB elsewhere"; empty if no place is known.
std::string taken_text(const RankMemory& use, const Places& places) {
  std::map<std::string, std::uint64_t> by_place;
  for (const auto& taken : use.taken) by_place[places.place(taken.where).text] += taken.bytes;
  std::uint64_t elsewhere = by_place[""];
  by_place.erase("");
  if (by_place.empty()) return "";
  std::vector<std::pair<std::string, std::uint64_t>> largest(by_place.begin(), by_place.end());
  std::ranges::stable_sort(largest, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> texts;
  for (const auto& [place, bytes] : largest) {
    if (texts.size() == kPlacesShown) {
      elsewhere += bytes;
    } else {
      texts.push_back(fmt::format("{} at {}", units::about_bytes(bytes), place));
    }
  }
  if (elsewhere > 0) texts.push_back(fmt::format("{} elsewhere", units::about_bytes(elsewhere)));
  return fmt::format(": {}", fmt::join(texts, ", "));
}

using elastic::CheckpointJournal;
using Restored = CheckpointJournal::Restored;

constexpr std::size_t kRoundsShown = 3;
constexpr std::size_t kTensorsShown = 3;

// The ranks of one round that resumed from the same checkpoint.
struct Recovery {
  Restored first;
  std::vector<int> ranks;
};

std::vector<Recovery> recoveries_of(const CheckpointJournal& journal) {
  std::vector<Recovery> recoveries;
  for (const Restored& restored : journal.restored()) {
    const auto same = std::ranges::find_if(recoveries, [&](const Recovery& recovery) {
      return recovery.first.in == restored.in && recovery.first.saved_in == restored.saved_in &&
             recovery.first.steps == restored.steps;
    });
    if (same == recoveries.end()) {
      recoveries.push_back({restored, {restored.rank}});
    } else {
      same->ranks.push_back(restored.rank);
    }
  }
  for (Recovery& recovery : recoveries) std::ranges::sort(recovery.ranks);
  return recoveries;
}

// For example "what rank 0 had saved in round 1 at train.cpp:41 in body".
std::string source_text(const Restored& restored, const CheckpointJournal& journal, const Places& places) {
  const auto& all = journal.saved();
  const auto saved = std::ranges::find_if(all, [&](const CheckpointJournal::Saved& each) {
    return each.is_kept && each.in == restored.saved_in && each.steps == restored.steps;
  });
  if (saved == all.end()) return fmt::format("what was saved in round {}", restored.saved_in.round);
  return fmt::format("what rank {} had saved in round {}{}", saved->rank, saved->in.round,
                     places.place(saved->where).at());
}

std::string steps_text(std::int64_t steps) { return fmt::format("{} step{}", steps, steps == 1 ? "" : "s"); }

std::string difference_text(const elastic::StateDifference& difference) {
  std::vector<std::string> names;
  for (const auto& name : difference.tensors) {
    if (names.size() < kTensorsShown) names.push_back(fmt::format("\"{}\"", name));
  }
  const std::size_t more = difference.tensors.size() - names.size();
  if (more > 0) names.push_back(fmt::format("{} more", more));
  return fmt::format(
      "compared with the run of the same seed without faults, the saved states differ first after {}: {} of {}, in "
      "round {}",
      steps_text(difference.steps), fmt::join(names, ", "), describe_ranks(difference.ranks), difference.in.round);
}

}  // namespace

std::vector<std::string> remarks_of(const RunRecord& record, const Places& places, const std::string& headline,
                                    bool failed) {
  std::vector<std::string> remarks;
  for (const auto& calls : record.unwaited) {
    if (headline.find(calls.call) != std::string::npos) continue;
    std::vector<int> ranks;
    for (const auto& rank : calls.ranks) ranks.push_back(rank.rank);
    const auto where = places.place(calls.where).at();
    remarks.push_back(fmt::format("nobody waited for {} of {}{}{}", calls.call, describe_ranks(ranks), where,
                                  times_text(calls.ranks)));
  }
  for (const auto& messages : record.short_messages) remarks.push_back(remark_of(messages, places));
  if (!failed) {
    add_left_behind(record, headline, remarks);
    for (const auto& groups : record.unused_groups) remarks.push_back(remark_of(groups, places));
  }
  for (const auto& thread : record.static_threads) remarks.push_back(text_of(thread, places));
  for (const auto& [text, of] : record.habits)
    remarks.push_back(fmt::format("{}: {}", describe_ranks(std::vector<int>(of.begin(), of.end())), text));
  if (failed) {
    for (const auto& [text, of] : record.notes) {
      const std::vector<int> ranks(of.begin(), of.end());
      if (headline.find(text) == std::string::npos) remarks.push_back(describe_ranks(ranks) + ": " + text);
    }
  }
  for (auto& text : compile_remarks(record, places)) {
    if (headline.find(text) == std::string::npos) remarks.push_back(std::move(text));
  }
  for (auto& text : graph_remarks(record, places)) remarks.push_back(std::move(text));
  return remarks;
}

std::vector<std::string> real_remarks(const WorldOptions& options) {
  if (options.mode != Mode::real) return {};
  std::map<std::string_view, std::vector<std::string_view>> ignored;  // keys by section
  std::size_t count = 0;
  for (const auto& row : world_rows()) {
    if (row.key.empty() || row.simulation_only == nullptr || !row.simulation_only(options)) continue;
    ignored[row.section].push_back(row.key);
    ++count;
  }
  if (count == 0) return {};
  std::vector<std::string> texts;
  for (const auto& [section, keys] : ignored) texts.push_back(fmt::format("[{}] {}", section, fmt::join(keys, ", ")));
  return {fmt::format("{} work{} in simulations only: this real run ignored {}", fmt::join(texts, " and "),
                      count == 1 ? "s" : "", count == 1 ? "it" : "them")};
}

std::vector<std::string> memory_remarks(const std::vector<RankMemory>& memory, std::uint64_t limit,
                                        const Places& places) {
  std::vector<std::pair<std::string, std::vector<int>>> said;  // in order of the first rank
  for (const auto& use : memory) {
    const auto of = limit > 0 ? fmt::format(" of {}", units::print_bytes(limit)) : "";
    auto text = fmt::format("peaked at {}{}{}", units::about_bytes(use.most), of, taken_text(use, places));
    const auto known = std::ranges::find_if(said, [&](const auto& each) { return each.first == text; });
    if (known != said.end()) {
      known->second.push_back(use.rank);
    } else {
      said.emplace_back(std::move(text), std::vector<int>{use.rank});
    }
  }
  std::vector<std::string> remarks;
  for (const auto& [text, ranks] : said) remarks.push_back(fmt::format("memory: {} {}", describe_ranks(ranks), text));
  return remarks;
}

std::vector<std::string> recovery_remarks(const RunRecord& record, const Places& places) {
  std::vector<std::string> lines;
  if (!record.without_faults) return lines;
  const auto recoveries = recoveries_of(record.checkpoints);
  const std::size_t hidden = recoveries.size() - std::min(recoveries.size(), kRoundsShown);
  if (hidden > 0) lines.push_back(fmt::format("before that, ranks had resumed from a checkpoint {} times", hidden));
  for (std::size_t i = hidden; i < recoveries.size(); ++i) {
    const Restored& first = recoveries[i].first;
    lines.push_back(fmt::format("{} resumed in round {}{} after {}, from {}", describe_ranks(recoveries[i].ranks),
                                first.in.round, places.place(first.where).at(), steps_text(first.steps),
                                source_text(first, record.checkpoints, places)));
  }
  const auto& without = *record.without_faults;
  if (!without.failure.empty()) {
    lines.push_back(fmt::format("the run of the same seed without faults fails, too: {}", without.failure));
  }
  if (const auto difference = elastic::first_difference(record.checkpoints, without.checkpoints)) {
    lines.push_back(difference_text(*difference));
  } else {
    lines.push_back("all saved states equal those of the run of the same seed without faults");
  }
  return lines;
}

}  // namespace rehearse::sim
