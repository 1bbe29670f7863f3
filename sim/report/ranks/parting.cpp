// SPDX-License-Identifier: BSD-3-Clause
#include "report/ranks/parting.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <rehearse_internal/exec/interpreter.h>

#include "report/writers/culprits.h"

namespace rehearse::sim {
namespace {

using Lines = Places::Lines;  // innermost first

// Ranks with the same stack.
struct Standing {
  std::vector<int> ranks;
  const Lines* lines;
};

std::vector<Standing> standings_of_mismatch(const comm::Mismatch& mismatch, const Places& places) {
  std::vector<Standing> all;
  const auto add = [&](const comm::Mismatch::Side& side) {
    all.push_back({side.alike.empty() ? std::vector<int>{side.rank} : side.alike, &places.lines(side.where)});
  };
  add(mismatch.first);
  add(mismatch.second);
  for (const auto& side : mismatch.others) add(side);
  return all;
}

std::vector<Standing> standings_of_waits(const exec::RunOutcome& outcome, const Places& places) {
  std::vector<Standing> all;
  for (const auto& fiber : outcome.blocked) {
    if (fiber.fiber_of_rank != 0) continue;
    const auto* const lines = &places.lines(fiber.where);
    const auto same = std::find_if(all.begin(), all.end(), [&](const Standing& each) { return *each.lines == *lines; });
    if (same == all.end()) {
      all.push_back({{fiber.rank}, lines});
    } else {
      same->ranks.push_back(fiber.rank);
    }
  }
  return all;
}

// Whether ranks may part at it because of a condition, and not because their loops end at different times.
bool is_condition(const exec::Interpreter::Branch& branch) {
  constexpr std::string_view kConditions[] = {"if ", "elif ", "else", "except", "case "};
  return std::ranges::any_of(kConditions, [&](std::string_view begin) { return branch.text.starts_with(begin); });
}

// With one of the branches around the place that are not around the other one: the innermost condition, because ranks
// often agree on outer ones; otherwise the outermost branch.
Parting::Side side_of(const Standing& standing, const Place& place, const Place& other) {
  Parting::Side side{standing.ranks, place, {}, 0};
  auto* const interpreter = exec::interpreter();
  if (interpreter == nullptr || place.file != other.file || place.function != other.function) return side;
  const auto own = interpreter->branches_around(place.file, place.line);
  const auto others = interpreter->branches_around(other.file, other.line);
  auto branch = std::mismatch(own.begin(), own.end(), others.begin(), others.end()).first;
  if (branch == own.end()) return side;
  const auto inner = std::find_if(own.rbegin(), std::make_reverse_iterator(branch), is_condition);
  if (inner != std::make_reverse_iterator(branch)) branch = std::prev(inner.base());
  side.branch = branch->text;
  side.branch_line = branch->line;
  return side;
}

std::optional<Parting> parted(const Standing& culprits, const Standing& others) {
  const auto end = culprits.lines->rend(), other_end = others.lines->rend();
  const auto [own, other] = std::mismatch(culprits.lines->rbegin(), end, others.lines->rbegin(), other_end);
  if (own == end || other == other_end) return std::nullopt;
  const bool is_in_one_function = own->file == other->file && own->function == other->function;
  if (own == culprits.lines->rbegin() && !is_in_one_function) return std::nullopt;  // stacks of different threads
  Parting parting{side_of(culprits, *own, *other), side_of(others, *other, *own)};
  const bool is_innermost = std::next(own) == end && std::next(other) == other_end;
  if (is_innermost && parting.culprits.branch.empty() && parting.others.branch.empty()) return std::nullopt;
  return parting;
}

}  // namespace

std::optional<Parting> parting_of(const Report& report, const RunRecord& record, const Places& places) {
  // Where ranks are at the end tells nothing if the trouble began before.
  const auto is_earlier = [](const Cause& cause) {
    return cause.kind == Cause::Kind::out_of_step || cause.kind == Cause::Kind::ended_without ||
           cause.kind == Cause::Kind::held_up || cause.kind == Cause::Kind::threw;
  };
  if (std::ranges::any_of(report.causes, is_earlier)) return std::nullopt;
  std::vector<Standing> all;
  if (report.verdict == Verdict::mismatch && !record.mismatches.empty()) {
    all = standings_of_mismatch(record.mismatches.front(), places);
  } else if (report.verdict == Verdict::deadlock || report.verdict == Verdict::livelock ||
             report.verdict == Verdict::timeout) {
    all = standings_of_waits(record.outcome, places);
  }
  std::erase_if(all, [](const Standing& each) { return each.lines->empty(); });
  if (all.size() < 2) return std::nullopt;
  const auto blamed = culprits_of(report);
  const auto is_blamed = [&](const Standing& each) {
    return std::find(blamed.begin(), blamed.end(), each.ranks.front()) != blamed.end();
  };
  // Most ranks first; the culprits last.
  std::stable_sort(all.begin(), all.end(), [&](const Standing& a, const Standing& b) {
    if (is_blamed(a) != is_blamed(b)) return is_blamed(b);
    return a.ranks.size() > b.ranks.size();
  });
  const auto culprits = std::find_if(std::next(all.begin()), all.end(), is_blamed);
  return culprits == all.end() ? std::nullopt : parted(*culprits, all.front());
}

std::vector<Traceback> tracebacks_of(const exec::RunOutcome& outcome, const Places& places) {
  std::vector<Traceback> tracebacks;
  auto* const interpreter = exec::interpreter();
  if (interpreter == nullptr) return tracebacks;
  std::map<exec::CallSite, std::size_t> known;  // index into tracebacks
  for (const auto& failure : outcome.failures) {
    const auto& places_thrown = places.lines(failure.thrown_at);
    if (places_thrown.empty()) continue;
    const auto [entry, is_new] = known.try_emplace(failure.thrown_at, tracebacks.size());
    if (is_new) {
      tracebacks.emplace_back();
      for (auto place = places_thrown.rbegin(); place != places_thrown.rend(); ++place)
        tracebacks.back().lines.push_back({*place, interpreter->source_of(place->file, place->line)});
    }
    tracebacks[entry->second].ranks.push_back(failure.rank);
  }
  return tracebacks;
}

}  // namespace rehearse::sim
