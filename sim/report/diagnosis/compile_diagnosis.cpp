// SPDX-License-Identifier: BSD-3-Clause
#include "report/diagnosis/compile_diagnosis.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/formatting/rank_list.h>

namespace rehearse::sim {
namespace {

using compiler::Divergence;
using compiler::FunctionRecord;

constexpr std::string_view kCompileGroups = "compile of ";

// The ranks of one compiler collective: the ranks that came to it, and the ranks for which these wait.
struct CompilerCollective {
  std::set<int> here, missing;
};

bool may_come_of_compiling(Verdict verdict) { return verdict == Verdict::mismatch || is_of_waits(verdict); }

// If the ranks exchange messages through the group's store, nobody knows for whom a rank waits. Assume that it waits
// for all other ranks that have a compiled function with compiler or guard collectives.
CompilerCollective find_store_gather(const RunRecord& record) {
  CompilerCollective collective;
  const auto& outcome = record.outcome;
  for (const auto& fiber : outcome.last_waits()) {
    if (fiber.any_rank && fiber.waits_on.find(kCompileGroups) != std::string::npos) collective.here.insert(fiber.rank);
  }
  if (collective.here.empty()) return collective;
  for (const auto& function : record.journal.functions()) {
    if (function->uses_collectives() && !collective.here.contains(function->rank()))
      collective.missing.insert(function->rank());
  }
  return collective;
}

CompilerCollective find_collective(const RunRecord& record) {
  CompilerCollective collective;
  std::string group;
  for (const auto& call : record.pending) {
    if (!call.group.starts_with(kCompileGroups) || call.waits_for.empty()) continue;
    if (group.empty()) group = call.group;
    if (call.group != group) continue;
    collective.here.insert(call.rank);
    collective.missing.insert(call.waits_for.begin(), call.waits_for.end());
  }
  if (!group.empty()) return collective;
  for (const auto& mismatch : record.mismatches) {
    if (!mismatch.group.starts_with(kCompileGroups)) continue;
    collective.here.insert(mismatch.first.alike.begin(), mismatch.first.alike.end());
    collective.here.insert(mismatch.second.alike.begin(), mismatch.second.alike.end());
    return collective;
  }
  return find_store_gather(record);
}

// The function that the rank is compiling, or about which it is agreeing with other ranks; null: none.
const FunctionRecord* at_work(const RunRecord& record, int rank) {
  for (const auto& function : record.journal.functions()) {
    if (function->rank() == rank && function->doing() != FunctionRecord::Doing::Nothing) return function.get();
  }
  return nullptr;
}

const FunctionRecord* of_name(const RunRecord& record, int rank, const std::string& name) {
  for (const auto& function : record.journal.functions()) {
    if (function->rank() == rank && function->name() == name) return function.get();
  }
  return nullptr;
}

// For example " and is in allreduce #7 on group "world" at train.cpp:8 in step", or " and has returned".
std::string where_it_is(const RankLine& line, bool several) {
  if (line.state == RankOutcome::returned || line.state == RankOutcome::failed) {
    return fmt::format(" and {} {}", several ? "have" : "has", to_string(line.state));
  }
  return line.doing.empty() ? "" : fmt::format(" and {} in {}{}", several ? "are" : "is", line.doing, line.where.at());
}

std::string place_of_compile(const FunctionRecord& function, const Places& places) {
  if (function.doing() != FunctionRecord::Doing::Compiling) return "";
  return places.place(function.compiles().back().where).at();
}

// Makes clauses such as "ranks 1-3 compile f ...". Ranks with the same text share a clause. Clauses are in the order in
// which their first ranks were added.
class Clauses {
 public:
  // `text(several)` returns the clause for one rank or for several.
  template <class Text>
  void add(int rank, Text text) {
    const std::string of_one = text(false);
    for (auto& clause : clauses_) {
      if (clause.of_one == of_one) return clause.ranks.push_back(rank);
    }
    clauses_.push_back({{rank}, of_one, text(true)});
  }

  std::string text() const {
    std::vector<std::string> texts;
    for (const auto& [ranks, of_one, of_several] : clauses_) {
      texts.push_back(fmt::format("{} {}", describe_ranks(ranks), ranks.size() == 1 ? of_one : of_several));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
  }

 private:
  struct Clause {
    std::vector<int> ranks;
    std::string of_one, of_several;
  };
  std::vector<Clause> clauses_;
};

CauseText cause_in(const CompilerCollective& collective, const RunRecord& record, const RankOutcomes& ends) {
  Clauses clauses;
  Cause compiling{Cause::Kind::compiles, {}};
  const FunctionRecord* function = nullptr;
  for (const int rank : collective.here) {
    const auto* const own = at_work(record, rank);
    if (own == nullptr) continue;
    if (function == nullptr) function = own;
    if (own->doing() == FunctionRecord::Doing::Compiling) compiling.ranks.push_back(rank);
    const auto place = place_of_compile(*own, ends.places());
    clauses.add(rank, [&](bool several) { return own->text(several) + place; });
  }
  if (function == nullptr) return {};
  bool any_hit = false;
  for (const int rank : collective.missing) {
    const auto* const own = of_name(record, rank, function->name());
    any_hit |= own != nullptr && own->last_hit() >= 0;
    clauses.add(rank, [&](bool several) {
      const auto text = own != nullptr ? own->text(several) : "never called " + function->name();
      return text + where_it_is(ends.line_of(rank), several);
    });
  }
  const bool would_help = any_hit && function->doing() == FunctionRecord::Doing::Compiling;
  const bool two = collective.here.size() + collective.missing.size() == 2;
  const auto advice =
      would_help ? fmt::format("; guard collectives would have made {} compile", two ? "both" : "all") : "";
  CauseText cause{clauses.text() + advice + "; "};
  if (!compiling.ranks.empty()) cause.causes.push_back(std::move(compiling));
  return cause;
}

std::string text_of(const compiler::Divergence& divergence, const Places& places) {
  return to_string(divergence) + places.place(divergence.where).at();
}

// The ranks that wait for others, and the ranks for which they wait.
struct Waits {
  std::set<int> waiting, awaited;

  void add(int rank, const std::vector<int>& waits_for) {
    for (const int other : waits_for) {
      if (other == rank) continue;
      waiting.insert(rank);
      awaited.insert(other);
    }
  }
};

// If any rank could have ended a wait, assume that the waiting rank waits for the ranks that compile.
std::vector<int> ranks_that_compile(const RunRecord& record) {
  std::vector<int> ranks;
  for (const auto& function : record.journal.functions()) {
    if (function->doing() == FunctionRecord::Doing::Compiling) ranks.push_back(function->rank());
  }
  return ranks;
}

Waits waits_of(const RunRecord& record, Verdict verdict) {
  Waits waits;
  const auto& outcome = record.outcome;
  for (const auto& fiber : outcome.last_waits()) {
    waits.add(fiber.rank, fiber.any_rank ? ranks_that_compile(record) : fiber.waits_for);
  }
  for (const auto& failure : outcome.failures) {
    if (failure.gave_up) waits.add(failure.rank, failure.gave_up->waits_for);
  }
  if (verdict != Verdict::livelock) return waits;
  for (const auto& call : record.pending) {
    if (!call.gave_up) waits.add(call.rank, call.waits_for);
  }
  return waits;
}

// The ranks whose call differs from the majority's; all ranks if there is no majority.
std::set<int> suspects_of(const comm::Mismatch& mismatch) {
  std::set<int> ranks(mismatch.second.alike.begin(), mismatch.second.alike.end());
  if (!mismatch.has_majority) ranks.insert(mismatch.first.alike.begin(), mismatch.first.alike.end());
  for (const auto& side : mismatch.others) ranks.insert(side.alike.begin(), side.alike.end());
  return ranks;
}

bool any_in(const std::vector<int>& ranks, const std::set<int>& set) {
  return std::ranges::any_of(ranks, [&](int rank) { return set.contains(rank); });
}

bool is_behind(const Divergence& divergence, const Waits& waits) {
  if (any_in(divergence.latest, waits.awaited)) return true;
  if (!divergence.communicates) return false;
  return any_in(divergence.compiled, waits.awaited) || any_in(divergence.compiled, waits.waiting);
}

bool is_behind(const Divergence& divergence, const std::set<int>& suspects) {
  return any_in(divergence.communicates ? divergence.compiled : divergence.latest, suspects);
}

// Finds the last call that caused the run's end because only some ranks recompiled a function in it. Returns nothing if
// there is no such call. A call caused the end in one of three cases:
// - Other ranks wait for a rank that compiled in this call and has not called the function since: it compiles for too
//   long, or never came back.
// - The compiled code has collectives, and a rank that compiled it waits, or other ranks wait for that rank.
// - Calls do not match, and a suspect made a call that differs from the majority's or, if there is no majority, any of
//   these calls. If the compiled code has collectives, every rank that compiled it is a suspect. Otherwise a rank that
//   compiled it is a suspect only if it has not called the function since.
std::optional<Divergence> lone_compile_behind(const RunRecord& record, Verdict verdict) {
  auto all = compiler::divergences(record.journal);
  const bool is_mismatch = !record.mismatches.empty();
  const auto suspects = is_mismatch ? suspects_of(record.mismatches.front()) : std::set<int>();
  const auto waits = is_mismatch ? Waits() : waits_of(record, verdict);
  for (auto each = all.rbegin(); each != all.rend(); ++each) {
    if (is_mismatch ? is_behind(*each, suspects) : is_behind(*each, waits)) return std::move(*each);
  }
  return std::nullopt;
}

}  // namespace

CauseText compile_cause(const RunRecord& record, const RankOutcomes& ends, Verdict verdict) {
  if (record.journal.functions().empty() || !may_come_of_compiling(verdict)) return {};
  if (const auto collective = find_collective(record); !collective.here.empty())
    return cause_in(collective, record, ends);
  const auto alone = lone_compile_behind(record, verdict);
  return {alone ? text_of(*alone, ends.places()) + "; " : ""};
}

std::vector<std::string> compile_remarks(const RunRecord& record, const Places& places) {
  std::vector<std::string> remarks;
  for (const auto& divergence : compiler::divergences(record.journal)) {
    remarks.push_back(text_of(divergence, places));
  }
  return remarks;
}

std::vector<std::string> graph_remarks(const RunRecord& record, const Places& places) {
  const auto sends_messages = [&](int rank) {
    const auto events = record.events.of_rank(rank);
    return std::ranges::any_of(
        events, [&](const comm::Event& event) { return record.events.flight_record(event).p2p_seq_id > 0; });
  };
  std::vector<std::string> remarks;
  for (const auto& difference : compiler::graph_differences(record.journal, sends_messages)) {
    remarks.push_back(to_string(difference, [&](const auto& node) { return places.place(node.where).text; }) +
                      ". If this is on purpose, let a guard see the reason: an argument, or a watched number");
  }
  return remarks;
}

}  // namespace rehearse::sim
