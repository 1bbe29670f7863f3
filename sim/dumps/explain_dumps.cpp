// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/explain_dumps.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "dumps/dump_files.h"
#include "dumps/dumped_job.h"
#include "dumps/job_diagnosis.h"
#include "dumps/read_dump.h"
#include "report/calls/differences.h"
#include "report/writers/culprits.h"

namespace rehearse::sim {
namespace {

RankLine line_of(int rank, const DumpedJob& job, const JobDiagnosis& diagnosis, const Stacks& stacks) {
  RankLine line;
  line.rank = rank;
  line.at = RankLine::kNotKnown;
  if (job.dump_of(rank) == nullptr) {
    line.doing = "left no dump";
    return line;
  }
  if (const auto last = diagnosis.last_completed(rank)) line.last = last->title;
  if (const auto* const open = diagnosis.stands_in(rank)) {
    line.state = RankOutcome::blocked;
    line.doing = open->description;
    line.waits_for = open->waits_for;
    line.where = stacks.place(open->call->stack);
    return line;
  }
  const auto last = diagnosis.last(rank);
  line.doing = last                       ? "in no call: all calls so far are complete"
               : job.dump_of(rank)->whole ? "made no call"
                                          : "the recorder had dropped the calls";
  if (last) line.where = stacks.place(last->call->stack);
  return line;
}

// The call whose stack tells the most about the rank.
std::optional<TitledCall> telling_call(int rank, const JobDiagnosis& diagnosis) {
  if (!diagnosis.mismatches().empty()) {
    const auto& sides = diagnosis.mismatches().front()->sides;
    if (const auto side = sides.find(rank); side != sides.end()) return side->second;
  }
  if (const auto* const open = diagnosis.stands_in(rank)) return TitledCall{open->call, open->title};
  return diagnosis.last(rank);
}

template <class Counts>
std::vector<int> ranks_whose(const DumpedJob& job, const Counts& counts) {
  std::vector<int> ranks;
  for (const auto& dump : job.dumps()) {
    if (counts(dump)) ranks.push_back(dump.rank);
  }
  return ranks;
}

// One line for each rank: the call in which it waits or, if it waits in none, the place of its last call.
std::vector<RankLine> rank_lines_of(const DumpedJob& job, const JobDiagnosis& diagnosis, const Stacks& stacks) {
  std::vector<RankLine> lines;
  for (int rank = 0; rank < job.ranks(); ++rank) lines.push_back(line_of(rank, job, diagnosis, stacks));
  return lines;
}

constexpr std::size_t kStacksMost = 64;   // in a report
constexpr std::size_t kRemarksMost = 16;  // about messages that nobody received

using FoundStack = std::pair<DumpFacts::Stack, std::size_t>;

void add_ranks(const DumpFacts::Stack& from, DumpFacts::Stack& to) {
  to.ranks.insert(to.ranks.end(), from.ranks.begin(), from.ranks.end());
  std::ranges::sort(to.ranks);
}

// Merges calls made from one stack: in a ring, each rank sends to another rank from the same line.
std::vector<FoundStack> one_of_each_stack(std::vector<FoundStack> all) {
  std::vector<FoundStack> folded;
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> known;  // by stack: index in `folded`, number of calls
  for (auto& each : all) {
    const auto [entry, is_new] = known.try_emplace(each.second, folded.size(), 0);
    ++entry->second.second;
    if (is_new) {
      folded.push_back(std::move(each));
    } else {
      add_ranks(each.first, folded[entry->second.first].first);
    }
  }
  for (const auto& [stack, place] : known) {
    if (place.second > 1) folded[place.first].first.call += fmt::format(", and {} like it", place.second - 1);
  }
  return folded;
}

std::vector<DumpFacts::Stack> shortened(std::vector<FoundStack> found) {
  if (found.size() > kStacksMost) found = one_of_each_stack(std::move(found));
  std::vector<DumpFacts::Stack> stacks;
  DumpFacts::Stack rest;
  for (auto& [stack, number] : found) {
    if (stacks.size() < kStacksMost) {
      stacks.push_back(std::move(stack));
    } else {
      add_ranks(stack, rest);
    }
  }
  if (!rest.ranks.empty()) {
    rest.call = fmt::format("{} further calls", found.size() - kStacksMost);
    stacks.push_back(std::move(rest));
  }
  return stacks;
}

// The stacks where ranks are: at the call that differs, at the call in which they wait, or otherwise at their last
// call. Stacks of `culprits` come first.
std::vector<DumpFacts::Stack> stacks_of(const DumpedJob& job, const JobDiagnosis& diagnosis, const Stacks& stacks,
                                        const std::vector<int>& culprits) {
  std::vector<FoundStack> found;
  for (const auto& dump : job.dumps()) {
    const auto call = telling_call(dump.rank, diagnosis);
    if (!call || call->call->stack == Stacks::kNone) continue;
    const auto same = std::ranges::find_if(
        found, [&](const auto& each) { return each.second == call->call->stack && each.first.call == call->title; });
    if (same != found.end()) {
      same->first.ranks.push_back(dump.rank);
      continue;
    }
    const auto& all = stacks.frames(call->call->stack);
    DumpFacts::Stack stack{{dump.rank}, call->title, stacks.lines(call->call->stack), {}};
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!is_of_libraries(all[i])) stack.own.push_back(stack.frames[i]);
    }
    found.push_back({std::move(stack), call->call->stack});
  }
  const auto is_of_culprit = [&](const auto& each) {
    return std::ranges::find(culprits, each.first.ranks.front()) != culprits.end();
  };
  std::stable_partition(found.begin(), found.end(), is_of_culprit);
  return shortened(std::move(found));
}

// Lists what the dumps do not tell, and what is odd about them.
std::vector<std::string> remarks_of_dumps(const DumpedJob& job, const JobDiagnosis& diagnosis) {
  std::vector<std::string> remarks;
  if (const auto ranks = job.without_dump(); !ranks.empty()) {
    remarks.push_back(fmt::format("{} left no dump: what {} called is not known", describe_ranks(ranks),
                                  ranks.size() == 1 ? "it" : "they"));
  }
  if (const auto ranks = ranks_whose(job, [](const Dump& dump) { return !dump.whole; }); !ranks.empty()) {
    remarks.push_back(
        fmt::format("the recorder of {} had already dropped its earliest calls, so they are not compared; set "
                    "TORCH_FR_BUFFER_SIZE higher to keep more",
                    describe_ranks(ranks)));
  }
  for (const auto& group : job.groups()) {
    if (group.members_are_known) continue;
    remarks.push_back(fmt::format("the dumps do not say which ranks belong to group \"{}\"; Rehearse assumes {}",
                                  group.identity.name, describe_ranks(group.identity.ranks)));
  }
  const auto& of_creations = diagnosis.creations().remarks;
  remarks.insert(remarks.end(), of_creations.begin(), of_creations.end());
  std::size_t never_received = 0;
  for (const auto& group : diagnosis.groups()) {
    for (const auto& send : group.never_received) {
      if (++never_received <= kRemarksMost) remarks.push_back(send + " is complete, and nobody received it");
    }
  }
  if (never_received > kRemarksMost)
    remarks.push_back(
        fmt::format("{} more sends are complete, and nobody received them", never_received - kRemarksMost));
  const auto& version = job.dumps().front().version;
  if (minor_version(version) > kDumpMinorMost) {
    remarks.push_back(
        fmt::format("the dumps have format {}; this version knows {}.{} at most, and ignores fields that came later",
                    version, kDumpMajor, kDumpMinorMost));
  }
  return remarks;
}

// For example "nccl 2.28.9"; empty if there are no calls.
std::string transport_of(const std::vector<Dump>& dumps) {
  for (const auto& dump : dumps) {
    if (dump.calls.empty()) continue;
    const auto& backend = dump.calls.front().backend;
    return dump.library.empty() ? backend : fmt::format("{} {}", backend, dump.library);
  }
  return "";
}

std::vector<Difference> differences_of(const JobDiagnosis& diagnosis, const Stacks& stacks) {
  std::vector<Difference> differences;
  if (const auto& creation = diagnosis.creations().mismatch)
    differences.push_back(difference_of(*creation, [](const comm::Mismatch::Side&) { return Place(); }));
  for (const auto* const group : diagnosis.mismatches()) {
    const auto where = [&](const comm::Mismatch::Side& side) {
      const auto call = group->sides.find(side.rank);
      return call == group->sides.end() ? Place() : stacks.place(call->second.call->stack);
    };
    differences.push_back(difference_of(*group->mismatch, where));
  }
  return differences;
}

// Leaves out ranks that no dump tells about: they may be at fault, but nobody knows.
std::vector<int> known_culprits(const Report& report, const JobDiagnosis& diagnosis) {
  auto culprits = culprits_of(report);
  std::erase_if(culprits, [&](int rank) { return diagnosis.unknown().contains(rank); });
  return culprits;
}

}  // namespace

Report explain_dumps(const std::vector<Dump>& dumps, const Stacks& stacks) {
  const DumpedJob job(dumps);
  const JobDiagnosis diagnosis(job, stacks);
  Report report;
  diagnosis.result().write_into(report);
  report.ranks = job.ranks();
  report.schedule = "real";
  report.version = REHEARSE_VERSION;
  report.transport = transport_of(dumps);
  report.operations = job.calls();
  report.rank_lines = rank_lines_of(job, diagnosis, stacks);
  report.differences = differences_of(diagnosis, stacks);
  report.remarks = remarks_of_dumps(job, diagnosis);
  auto culprits = known_culprits(report, diagnosis);
  auto& facts = report.dumps.emplace();
  facts.format = dumps.front().version;
  for (const auto& dump : dumps) facts.ranks.push_back(dump.rank);
  facts.without_dump = job.without_dump();
  facts.culprits = std::move(culprits);
  facts.stacks = stacks_of(job, diagnosis, stacks, facts.culprits);
  if (std::ranges::all_of(dumps, [](const Dump& dump) {
        return std::ranges::all_of(dump.calls, [](const DumpedCall& call) { return call.stack == Stacks::kNone; });
      })) {
    report.hint = "the dumps hold no stacks, as JSON does not; pickles do, and TORCH_FR_CPP_STACK=1 adds those of C++";
  }
  return report;
}

Report explain_dumps(const std::vector<std::string>& paths) {
  Stacks stacks;
  const auto dumps = read_dumps(paths, stacks);
  return explain_dumps(dumps, stacks);
}

}  // namespace rehearse::sim
