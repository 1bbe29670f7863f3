// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/determinism.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/sim/format_time.h>

namespace rehearse::sim {
namespace {

// For example " at t=1.2 ms". Names both times if they differ between the runs.
std::string when(const RunPath& first, const RunPath& second, std::size_t decision) {
  const bool in_first = decision < first.states.size();
  const bool in_second = decision < second.states.size();
  if (!in_first && !in_second) return "";
  if (!in_first) return " at t=" + format_time(second.states[decision].at);
  const VirtualTime at = first.states[decision].at;
  if (!in_second || second.states[decision].at == at) return " at t=" + format_time(at);
  return fmt::format(" at t={} in the first run and t={} in the second", format_time(at),
                     format_time(second.states[decision].at));
}

// What a decision was about, in a user's words.
std::string_view subject_of(const Decision& decision) {
  switch (decision.kind) {
    case ChoiceKind::next_fiber:
      return "which rank runs next";
    case ChoiceKind::receive_any_source:
      return "whose message a receive takes";
    case ChoiceKind::latency:
      return "how long a transfer, a compilation or a call on a file takes";
    case ChoiceKind::fault:
      return "whether or where a fault happens";
    case ChoiceKind::compile_cache:
      return "whether a stored graph is used";
    case ChoiceKind::equal_timers:
      return "which of several events at one time comes first";
    case ChoiceKind::listing:
      return "in which order a folder is listed";
  }
  return to_string(decision.kind);
}

std::string text_of(const RunCalls& run, const RunCalls::Call& call) {
  return fmt::format("{} as #{} of group \"{}\"", run.texts[call.what], call.sequence, run.texts[call.group]);
}

// For example " at train.cpp:41 in step"; empty if unknown.
std::string place_of(const RunCalls& run, const RunCalls::Call& call) {
  const auto& where = run.texts[call.where];
  return where.empty() ? "" : " at " + where;
}

// Names the rank that the decision lets go on: " (rank 2, whose last call was broadcast(...) as #6 of group "world" at
// train.cpp:38 in step)". Empty if that rank is unknown.
std::string who_goes_on(const RunPath& run, std::size_t decision) {
  if (decision >= run.states.size() || run.states[decision].rank < 0) return "";
  const auto& state = run.states[decision];
  const RunCalls::Call* last = nullptr;
  for (const auto& call : run.calls.calls) {
    if (call.rank == state.rank && call.at <= state.at) last = &call;
  }
  if (last == nullptr) return fmt::format(" (rank {})", state.rank);
  return fmt::format(" (rank {}, whose last call was {}{})", state.rank, text_of(run.calls, *last),
                     place_of(run.calls, *last));
}

std::string answer(const RunPath& run, std::size_t decision) {
  const auto& made = run.decisions[decision];
  return fmt::format("chose option {} of {}{}", made.answer, made.options, who_goes_on(run, decision));
}

RunDifference decision_difference(const RunPath& first, const RunPath& second, std::size_t at) {
  const std::string time = when(first, second, at);
  if (at >= first.decisions.size() || at >= second.decisions.size()) {
    const bool first_goes_on = at < first.decisions.size();
    const RunPath& longer = first_goes_on ? first : second;
    return {RunDifference::What::decision, at,
            fmt::format("decision {} ({}): the {} run {}, the {} run made no such decision{}", at,
                        subject_of(longer.decisions[at]), first_goes_on ? "first" : "second", answer(longer, at),
                        first_goes_on ? "second" : "first", time)};
  }
  const Decision& one = first.decisions[at];
  const Decision& two = second.decisions[at];
  if (one.kind != two.kind) {
    return {RunDifference::What::decision, at,
            fmt::format("decision {}: the first run {} ({}), the second run {} ({}){}", at, answer(first, at),
                        subject_of(one), answer(second, at), subject_of(two), time)};
  }
  return {RunDifference::What::decision, at,
          fmt::format("decision {} ({}): the first run {}, the second run option {} of {}{}{}", at, subject_of(one),
                      answer(first, at), two.answer, two.options, who_goes_on(second, at), time)};
}

// Index of the first decision before which the runs took different steps. If they part after the last decision, or the
// states are unknown: the number of decisions.
std::size_t first_other_state(const RunPath& first, const RunPath& second) {
  const std::size_t known = std::min(first.states.size(), second.states.size());
  for (std::size_t at = 0; at < known; ++at) {
    if (first.states[at].hash != second.states[at].hash) return at;
  }
  return first.decisions.size();
}

RunDifference schedule_difference(const RunPath& first, const RunPath& second) {
  const bool states_known = !first.states.empty() && !second.states.empty();
  const std::size_t at = first_other_state(first, second);
  std::string text;
  if (!states_known) {
    text = fmt::format("all {} decisions are equal, but ranks ran in another order, or at other times", at);
  } else if (at == first.decisions.size()) {
    text = fmt::format(
        "all {} decisions are equal, but after the last one ranks ran in another order, or at other times", at);
  } else {
    text = fmt::format("before decision {} ({}), ranks ran in another order, or at other times{}", at,
                       subject_of(first.decisions[at]), when(first, second, at));
  }
  return {RunDifference::What::schedule, at, std::move(text)};
}

using CallsOfRank = std::vector<const RunCalls::Call*>;

std::map<int, CallsOfRank> by_rank(const RunCalls& run) {
  std::map<int, CallsOfRank> ranks;
  for (const auto& call : run.calls) ranks[call.rank].push_back(&call);
  return ranks;
}

// One rank's call in both runs; null: the rank made none.
struct CallPair {
  const RunCalls::Call* first = nullptr;
  const RunCalls::Call* second = nullptr;
};

std::string text_of(const RunPath& first, const RunPath& second, const CallPair& pair) {
  const auto at = [](const RunPath& run, const RunCalls::Call& call) {
    return " at t=" + format_time(call.at) + place_of(run.calls, call);
  };
  constexpr const char* begin = "the first call that differs is ";
  if (pair.first == nullptr || pair.second == nullptr) {
    const bool in_first = pair.first != nullptr;
    const RunPath& run = in_first ? first : second;
    const RunCalls::Call& only = in_first ? *pair.first : *pair.second;
    return fmt::format("{}rank {}'s {}{}, only in the {} run; ", begin, only.rank, text_of(run.calls, only),
                       at(run, only), in_first ? "first" : "second");
  }
  const auto one = text_of(first.calls, *pair.first), two = text_of(second.calls, *pair.second);
  return fmt::format("{}rank {}'s {}{} in the first run,{}{} in the second; ", begin, pair.first->rank, one,
                     at(first, *pair.first), one == two ? "" : " " + two, at(second, *pair.second));
}

// Compares the calls that one rank made in the two runs, in the rank's own order. The order between ranks does not
// count, because the schedule decides it.
CallPair first_difference_of(const RunPath& first, const CallsOfRank& one, const RunPath& second,
                             const CallsOfRank& two) {
  for (std::size_t i = 0; i < std::max(one.size(), two.size()); ++i) {
    const CallPair pair{i < one.size() ? one[i] : nullptr, i < two.size() ? two[i] : nullptr};
    if (pair.first == nullptr || pair.second == nullptr || pair.first->at != pair.second->at ||
        text_of(first.calls, *pair.first) != text_of(second.calls, *pair.second)) {
      return pair;
    }
  }
  return {};
}

std::string call_difference(const RunPath& first, const RunPath& second) {
  const auto ones = by_rank(first.calls);
  auto twos = by_rank(second.calls);
  for (const auto& [rank, calls] : ones) twos.try_emplace(rank);
  CallPair earliest;
  VirtualTime when = VirtualTime::max();
  for (const auto& [rank, two] : twos) {
    const auto one = ones.find(rank);
    const auto pair = first_difference_of(first, one != ones.end() ? one->second : CallsOfRank{}, second, two);
    for (const auto* const call : {pair.first, pair.second}) {
      if (call == nullptr || call->at >= when) continue;
      when = call->at;
      earliest = pair;
    }
  }
  return when == VirtualTime::max() ? "" : text_of(first, second, earliest);
}

std::optional<RunDifference> difference_of_ways(const RunPath& first, const RunPath& second) {
  const auto parted =
      std::mismatch(first.decisions.begin(), first.decisions.end(), second.decisions.begin(), second.decisions.end());
  const auto at = static_cast<std::size_t>(parted.first - first.decisions.begin());
  const bool same_decisions = parted.first == first.decisions.end() && parted.second == second.decisions.end();
  // A difference in the steps before the first different decision is nearer to the cause.
  if (first_other_state(first, second) < at || (same_decisions && first.decisions_hash != second.decisions_hash)) {
    return schedule_difference(first, second);
  }
  if (!same_decisions) return decision_difference(first, second, at);
  if (first.events_hash == second.events_hash) return std::nullopt;
  return RunDifference{RunDifference::What::events, 0,
                       fmt::format("all {} decisions and steps are equal, but the operations differ", at)};
}

}  // namespace

std::uint64_t choices_of_fibers(const RunPath& path) {
  const auto is_of_fibers = [](const Decision& decision) { return decision.kind == ChoiceKind::next_fiber; };
  return static_cast<std::uint64_t>(std::ranges::count_if(path.decisions, is_of_fibers));
}

RunPath path_of(const DecisionLog& decisions, std::uint64_t events_hash) {
  const auto& all = decisions.decisions();
  return {{all.begin(), all.end()}, {}, decisions.hash(), events_hash, {}};
}

std::uint32_t WitnessOracle::choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                                    std::span<const std::uint32_t> weights) {
  auto* const executor = exec::RankExecutor::current();
  if (executor != nullptr) states_.push_back({executor->clock().now(), executor->decisions().log().hash()});
  const auto index = answers_.choose(kind, candidates, weights);
  // The main fiber of rank r has the number r; all other fibers have higher numbers.
  const bool is_of_fibers = executor != nullptr && kind == ChoiceKind::next_fiber && index < candidates.size();
  const auto ranks = is_of_fibers ? static_cast<std::uint32_t>(executor->options().ranks) : 0;
  if (is_of_fibers && candidates[index] < ranks) states_.back().rank = static_cast<int>(candidates[index]);
  return index;
}

RunPath WitnessOracle::path(const DecisionLog& decisions, std::uint64_t events_hash) const {
  RunPath path = path_of(decisions, events_hash);
  // If somebody asked the oracle outside the run, or in another run, the states do not belong to these decisions.
  if (states_.size() == path.decisions.size()) path.states = states_;
  return path;
}

std::optional<RunDifference> first_difference(const RunPath& first, const RunPath& second) {
  auto difference = difference_of_ways(first, second);
  if (difference) difference->text.insert(0, call_difference(first, second));
  return difference;
}

}  // namespace rehearse::sim
