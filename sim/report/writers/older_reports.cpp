// SPDX-License-Identifier: BSD-3-Clause
#include "report/writers/older_reports.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rehearse_internal/comm/connection_text.h>

namespace rehearse::sim {
namespace {

// Parses ranks in the form of rank_numbers(): "0-1,3".
std::vector<int> ranks_in(std::string_view text) {
  std::vector<int> ranks;
  const auto number = [&text]() -> int {
    int value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return error == std::errc() ? value : -1;
  };
  for (int first = number(); first >= 0; first = number()) {
    int last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      last = number();
    }
    for (int rank = first; rank <= last; ++rank) ranks.push_back(rank);
    if (!text.starts_with(',')) break;
    text.remove_prefix(1);
  }
  return ranks;
}

// The ranks for which a call waited, from the text of its timeout: "...; missing ranks 0-1", or "missing ranks: 0-1".
std::vector<int> missing_ranks(std::string_view doing) {
  constexpr std::string_view kMissing = "; missing rank";
  const auto missing = doing.find(kMissing);
  if (missing == doing.npos) return {};
  const auto rest = doing.substr(missing + kMissing.size());
  return ranks_in(rest.substr(std::min(rest.find_first_not_of("s: "), rest.size())));
}

// "rank 3" or "ranks 0-1,3", and what follows.
struct Subject {
  std::vector<int> ranks;
  std::string_view rest;
};

Subject subject_of(std::string_view clause) {
  constexpr std::string_view kOne = "rank ", kSeveral = "ranks ";
  if (!clause.starts_with(kOne) && !clause.starts_with(kSeveral)) return {};
  clause.remove_prefix(clause.starts_with(kOne) ? kOne.size() : kSeveral.size());
  const auto numbers = clause.substr(0, clause.find_first_of(" :"));
  return {ranks_in(numbers), clause.substr(numbers.size())};
}

// One clause of a headline: for "rank 3 has ended without x, in which ..." the ranks {3} and the object "x".
struct Clause {
  std::vector<int> ranks;
  std::string object;
};

std::optional<Clause> find_clause(std::string_view headline, std::string_view of_one, std::string_view of_several,
                                  std::string_view end) {
  constexpr std::string_view kNext = "; ";
  while (!headline.empty()) {
    const auto [ranks, rest] = subject_of(headline);
    const auto verb = rest.starts_with(of_one) ? of_one : of_several;
    const auto length = rest.find(end, verb.size());
    if (!ranks.empty() && rest.starts_with(verb) && length != rest.npos)
      return Clause{ranks, std::string(rest.substr(verb.size(), length - verb.size()))};
    const auto next = headline.find(kNext);
    headline.remove_prefix(next == headline.npos ? headline.size() : next + kNext.size());
  }
  return std::nullopt;
}

// The ranks in "rank 3: ..." and "ranks 0 and 1 use ...". Headlines of memory checkers began so.
std::vector<int> ranks_named_first(std::string_view headline) {
  constexpr std::string_view kAnd = " and ";
  auto [ranks, rest] = subject_of(headline);
  if (rest.starts_with(kAnd)) {
    const auto others = ranks_in(rest.substr(kAnd.size()));
    ranks.insert(ranks.end(), others.begin(), others.end());
  }
  return ranks;
}

std::vector<Cause> causes_in(const Report& report) {
  const std::string_view headline = report.headline;
  std::vector<Cause> causes;
  if (auto clause = find_clause(headline, " was unwinding an exception, ", " were unwinding an exception, ", "; ")) {
    constexpr std::string_view kThrown = ", thrown at ";
    const auto thrown = clause->object.rfind(kThrown);
    auto where = thrown == std::string::npos ? "" : clause->object.substr(thrown + kThrown.size());
    causes.push_back({Cause::Kind::threw, std::move(clause->ranks), "", std::move(where)});
  }
  const auto [first, rest] = subject_of(headline);
  if (rest.starts_with(" compiles ") || rest.starts_with(" compile ")) causes.push_back({Cause::Kind::compiles, first});
  if (auto clause = find_clause(headline, " is out of step from ", " are out of step from ", " on: "))
    causes.push_back({Cause::Kind::out_of_step, std::move(clause->ranks), std::move(clause->object)});
  if (auto clause = find_clause(headline, " has ended without ", " have ended without ", ", in which "))
    causes.push_back({Cause::Kind::ended_without, std::move(clause->ranks), std::move(clause->object)});
  if (report.verdict == Verdict::check_failed && report.findings.empty()) {
    auto ranks = ranks_named_first(headline);
    if (!ranks.empty()) causes.push_back({Cause::Kind::found_at_fault, std::move(ranks)});
  }
  return causes;
}

}  // namespace

void add_facts_of_older_versions(Report& report) {
  report.causes = causes_in(report);
  for (auto& line : report.rank_lines) {
    line.gave_up_on = missing_ranks(line.doing);
    if (const auto rank = comm::closed_by(line.doing)) line.lost = {*rank};
  }
}

}  // namespace rehearse::sim
