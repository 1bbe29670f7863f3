// SPDX-License-Identifier: BSD-3-Clause
#include "report/diagnosis/remarks.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <rehearse_internal/formatting/rank_list.h>

#include "report/diagnosis/compile_diagnosis.h"

namespace rehearse::sim {
namespace {

// For example " (5 times each)"; empty if each rank made the call once.
std::string times_text(const std::vector<comm::UnwaitedCalls::OfRank>& ranks) {
  std::uint64_t all = 0;
  for (const auto& rank : ranks) all += rank.times;
  if (all == ranks.size()) return "";
  const auto as_first = [&](const auto& rank) { return rank.times == ranks.front().times; };
  const bool alike = ranks.size() > 1 && std::all_of(ranks.begin(), ranks.end(), as_first);
  return alike ? fmt::format(" ({} times each)", ranks.front().times) : fmt::format(" ({} times in all)", all);
}

std::string remark_of(const comm::ShortMessages& messages, const Places& places) {
  const auto where = places.text(messages.where);
  const bool each_once = messages.times == messages.ranks.size();
  return fmt::format(
      "{} of {}{}{} got {} of {} elements{}: the other elements keep their old values, as with Gloo; NCCL needs a send "
      "and a receive of equal sizes",
      messages.call, describe_ranks(messages.ranks), where.empty() ? "" : " at ", where, messages.received,
      messages.elements, each_once ? "" : fmt::format(" ({} times in all)", messages.times));
}

// Adds calls that ranks had in flight when other calls failed, and for which nobody waited any more. Such calls are
// only a remark, because the record does not tell a forgotten wait from a call that a program left on purpose after a
// failure.
void add_left_behind(const RunRecord& record, const std::string& headline, std::vector<std::string>& remarks) {
  struct Left {
    std::vector<int> ranks, missing;
  };
  std::map<std::string, Left> calls;
  for (const auto& call : record.pending) {
    const auto is_crashed = [&](int rank) { return record.crashed.contains(rank); };
    const bool is_plain = std::all_of(call.waits_for.begin(), call.waits_for.end(), is_crashed);
    if (!call.left_behind || call.gave_up || call.waits_for.empty() || is_plain) continue;
    if (headline.find(call.call) != std::string::npos) continue;
    auto& left = calls[call.call];
    left.ranks.push_back(call.rank);
    left.missing = call.waits_for;
  }
  for (const auto& [call, left] : calls) {
    remarks.push_back(
        fmt::format("{} of {} was still in flight when a call failed: {} never came to it, and nobody waited for it",
                    call, describe_ranks(left.ranks), describe_ranks(left.missing)));
  }
}

std::string text_of(const exec::StaticThread& thread, const Places& places) {
  const auto where = places.text(thread.where);
  return fmt::format(
      "rank {} started a thread{}{} while it initialised a static variable. All ranks of a simulation share that "
      "variable, but the thread belongs to this rank and ends with this world. Keep the object in ctx.local<T>()",
      thread.rank, where.empty() ? "" : " at ", where);
}

}  // namespace

std::vector<std::string> remarks_of(const RunRecord& record, const Places& places, const std::string& headline,
                                    bool failed) {
  std::vector<std::string> remarks;
  for (const auto& calls : record.unwaited) {
    if (headline.find(calls.call) != std::string::npos) continue;
    std::vector<int> ranks;
    for (const auto& rank : calls.ranks) ranks.push_back(rank.rank);
    const auto where = places.text(calls.where);
    remarks.push_back(fmt::format("nobody waited for {} of {}{}{}{}", calls.call, describe_ranks(ranks),
                                  where.empty() ? "" : " at ", where, times_text(calls.ranks)));
  }
  for (const auto& messages : record.short_messages) remarks.push_back(remark_of(messages, places));
  if (!failed) add_left_behind(record, headline, remarks);
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

}  // namespace rehearse::sim
