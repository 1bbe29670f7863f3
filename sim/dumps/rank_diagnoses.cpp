// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/rank_diagnoses.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "dumps/read_dump.h"

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

}  // namespace

std::vector<RankLine> rank_lines_of(const DumpedJob& job, const JobDiagnosis& diagnosis, const Stacks& stacks) {
  std::vector<RankLine> lines;
  for (int rank = 0; rank < job.ranks(); ++rank) lines.push_back(line_of(rank, job, diagnosis, stacks));
  return lines;
}

namespace {

constexpr std::size_t kStacksMost = 64;   // in a report
constexpr std::size_t kRemarksMost = 16;  // about messages that nobody received

using FoundStack = std::pair<DumpFacts::Stack, std::size_t>;

void add_ranks(const DumpFacts::Stack& from, DumpFacts::Stack& to) {
  to.ranks.insert(to.ranks.end(), from.ranks.begin(), from.ranks.end());
  std::sort(to.ranks.begin(), to.ranks.end());
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

}  // namespace

std::vector<DumpFacts::Stack> stacks_of(const DumpedJob& job, const JobDiagnosis& diagnosis, const Stacks& stacks,
                                        const std::vector<int>& culprits) {
  std::vector<FoundStack> found;
  for (const auto& dump : job.dumps()) {
    const auto call = telling_call(dump.rank, diagnosis);
    if (!call || call->call->stack == Stacks::kNone) continue;
    const auto same = std::find_if(found.begin(), found.end(), [&](const auto& each) {
      return each.second == call->call->stack && each.first.call == call->title;
    });
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
    return std::find(culprits.begin(), culprits.end(), each.first.ranks.front()) != culprits.end();
  };
  std::stable_partition(found.begin(), found.end(), is_of_culprit);
  return shortened(std::move(found));
}

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

}  // namespace rehearse::sim
