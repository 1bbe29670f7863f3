// SPDX-License-Identifier: BSD-3-Clause
#include "cli/sweep/bugs.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <rehearse_internal/sim/determinism.h>

#include "report/ranks/timeouts.h"
#include "report/writers/culprits.h"

namespace rehearse::cli {
namespace {

// Replaces numbers with their signs, hashes, and lists and ranges of numbers, by "#". Digits within a name (float32,
// fc1) stay. Tags go, because texts leave out tag 0.
std::string without_numbers(const std::string& text) {
  static const std::regex number(
      R"((^|[^A-Za-z0-9_])#?(-?(0x[0-9a-fA-F]+|(?=[0-9a-f]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{6,}\b|)"
      R"([0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?|(nan|inf)\b)))");
  static const std::regex list(R"(#((, ?|-|->| -> )#)+)"), tag(" with tag #"), time(R"(# (ns|us|ms|s|min|h)\b)");
  auto numbered = std::regex_replace(text.substr(0, text.find('\n')), number, "$1#");
  numbered = std::regex_replace(std::regex_replace(numbered, list, "#"), tag, "");
  return std::regex_replace(numbered, time, "# s");
}

// The same text for one and for several, for a call that reads a tensor on one rank and writes it on another, and for a
// write through a pointer before or after the call has moved its data.
std::string without_number_of_words(const std::string& text) {
  static const std::regex nouns(R"(\b(rank|number|element|time|call)s?\b)"),
      verbs(R"(\b(has|have|is|are|was|were|its|their|reads|writes)\b)"), unchanged(", polled without a change"),
      phase(
          R"((changed) (while the call was under way|after the call had moved its data and before .* waited for the call))");
  const auto of_any_time = std::regex_replace(std::regex_replace(text, phase, "$1"), unchanged, "");
  return std::regex_replace(std::regex_replace(of_any_time, nouns, "$1"), verbs, "~");
}

// The numbers of source lines stay: "train.cpp:41".
std::string without_other_numbers(const std::string& text) {
  static const std::regex line(R"((\.[A-Za-z]+:)([0-9]))"), named(R"((\.[A-Za-z]+:)L([0-9]))");
  return std::regex_replace(without_numbers(std::regex_replace(text, line, "$1L$2")), named, "$1$2");
}

std::string placed(const std::string& call, const Place& where) {
  const auto text = without_numbers(call);
  return where.empty() ? text : text + " " + where.at();
}

// A place names the callers of a helper only if the helper has been called from several places, and the line of a call
// only if the rank waits elsewhere. Both may be matters of chance. So two places are the same unless both name callers,
// and other ones.
struct Callers {
  // Takes them out of the parts.
  explicit Callers(std::vector<std::string>& parts) {
    static const std::regex callers(R"(, (from|called at) \S+:[0-9]+ in [^ ,;]+)");
    for (auto& part : parts) {
      std::smatch match;
      named.push_back(std::regex_search(part, match, callers) ? match.str() : "");
      part = std::regex_replace(part, callers, "");
    }
  }
  bool may_be(const Callers& other) const {
    return std::ranges::equal(named, other.named,
                              [](const auto& a, const auto& b) { return a.empty() || b.empty() || a == b; });
  }

  std::vector<std::string> named;  // of each part; empty: none
};

bool depends_on_more_than_the_seed(const Report& report) {
  return std::ranges::any_of(report.remarks,
                             [](const std::string& remark) { return remark.starts_with(sim::kOutsideOfTheSeed); });
}

}  // namespace

std::vector<std::string> culprit(const Report& report) {
  std::set<std::string> parts;
  if (!report.differences.empty()) {
    const auto& difference = report.differences.front();
    parts.insert(placed(difference.first.fingerprint, difference.first.where));
    parts.insert(placed(difference.second.fingerprint, difference.second.where));
  }
  // Where other ranks were is a matter of chance.
  // The code that made the state wrong is one bug, whichever tensor shows it first.
  const bool is_made_there = !report.findings.empty() && !report.findings.front().where.empty();
  if (is_made_there) parts.insert("made" + report.findings.front().where.at());
  if (!is_made_there && sim::is_found_by_checker(report)) parts.insert(without_other_numbers(report.headline));
  // If a time limit ended the run, what a rank was doing is a matter of chance, but the source line that it had reached
  // is not.
  if (parts.empty() && report.verdict == Verdict::interrupted) {
    for (const auto& line : report.rank_lines) {
      if (line.state != RankOutcome::returned && !line.where.empty()) parts.insert("at " + line.where.text);
    }
  }
  for (const auto state : {RankOutcome::failed, RankOutcome::blocked}) {
    if (!parts.empty()) break;
    for (const auto& line : report.rank_lines) {
      // Which ranks came to the call after it had timed out on another one is a matter of chance.
      const bool follows = report.verdict == Verdict::timeout && line.doing.find(sim::kOverBefore) != std::string::npos;
      if (line.state == state && !follows) parts.insert(placed(line.doing, line.where));
    }
  }
  return {parts.begin(), parts.end()};
}

std::vector<std::string> fired_faults(const Report& report) {
  std::vector<std::string> faults;
  for (const auto& fault : report.faults) {
    if (fault.times > 0) faults.push_back(fault.fault);
  }
  return faults;
}

std::vector<Bug> bugs_of(const SeedResults& results) {
  std::vector<Bug> bugs;
  using Alike = std::vector<std::pair<Callers, std::size_t>>;  // the second: index of the bug
  std::map<std::tuple<Verdict, std::vector<std::string>, std::string>, Alike> known;
  for (const auto& [seed, result] : results) {
    if (!result.failure) continue;
    auto parts = culprit(*result.failure);
    auto verdict = result.failure->verdict;
    // How such a run fails is a matter of chance.
    if (depends_on_more_than_the_seed(*result.failure)) {
      verdict = Verdict::nondeterminism;
      parts = {"the program uses something outside of the seed; --check-determinism=10 says more"};
    }
    const auto pattern = parts.empty() ? without_numbers(result.failure->headline) : "";
    auto alike = parts;
    for (auto& part : alike) part = without_number_of_words(part);
    const Callers callers(alike);
    auto& same = known[{verdict, std::move(alike), without_number_of_words(pattern)}];
    auto bug = std::ranges::find_if(same, [&](const auto& each) { return each.first.may_be(callers); });
    if (bug == same.end()) {
      bug = same.insert(bug, {callers, bugs.size()});
      bugs.push_back({result.failure.get(), std::move(parts), {}});
    }
    bugs[bug->second].seeds.push_back(seed);
  }
  return bugs;
}

std::vector<SharedRemark> remarks_of(const SeedResults& results) {
  std::vector<SharedRemark> remarks;
  std::map<std::string, std::size_t> known;
  for (const auto& [seed, result] : results) {
    for (const auto& text : result.remarks) {
      const auto alike = without_numbers(text);
      const auto [entry, is_new] = known.try_emplace(without_number_of_words(alike), remarks.size());
      if (is_new) remarks.push_back({text, {}});
      // The ranks of one seed are not those of another.
      static const std::regex ranks("^ranks? #: ");
      if (remarks[entry->second].text != text) remarks[entry->second].text = std::regex_replace(alike, ranks, "");
      auto& seeds = remarks[entry->second].seeds;
      if (seeds.empty() || seeds.back() != seed) seeds.push_back(seed);
    }
  }
  return remarks;
}

}  // namespace rehearse::cli
