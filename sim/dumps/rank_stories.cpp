// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/rank_stories.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "dumps/read_dump.h"

namespace rehearse::sim {
namespace {

RankLine line_of(int rank, const DumpedJob& job, const JobStory& story, const Stacks& stacks) {
  RankLine line;
  line.rank = rank;
  line.at = RankLine::kNotKnown;
  if (job.dump_of(rank) == nullptr) {
    line.doing = "left no dump";
    return line;
  }
  if (const auto last = story.last_completed(rank)) line.last = last->title;
  if (const auto* const open = story.stands_in(rank)) {
    line.state = RankOutcome::blocked;
    line.doing = open->description;
    line.waits_for = open->waits_for;
    line.where = stacks.place(open->call->stack);
    return line;
  }
  const auto last = story.last(rank);
  line.doing = last                       ? "all its calls are complete, it was in code of its own"
               : job.dump_of(rank)->whole ? "it made no call"
                                          : "its recorder had dropped its calls";
  if (last) line.where = stacks.place(last->call->stack);
  return line;
}

// The call whose stack tells the most of the rank.
std::optional<TitledCall> telling_call(int rank, const JobStory& story) {
  if (!story.mismatches().empty()) {
    const auto& sides = story.mismatches().front()->sides;
    if (const auto side = sides.find(rank); side != sides.end()) return side->second;
  }
  if (const auto* const open = story.stands_in(rank)) return TitledCall{open->call, open->title};
  return story.last(rank);
}

// "rank 2 left no dump", "ranks 2-3 left no dumps".
template <class Counts>
std::vector<int> ranks_whose(const DumpedJob& job, const Counts& counts) {
  std::vector<int> ranks;
  for (const auto& dump : job.dumps()) {
    if (counts(dump)) ranks.push_back(dump.rank);
  }
  return ranks;
}

}  // namespace

std::vector<RankLine> rank_lines_of(const DumpedJob& job, const JobStory& story, const Stacks& stacks) {
  std::vector<RankLine> lines;
  for (int rank = 0; rank < job.ranks(); ++rank) lines.push_back(line_of(rank, job, story, stacks));
  return lines;
}

std::vector<DumpFacts::Stack> stacks_of(const DumpedJob& job, const JobStory& story, const Stacks& stacks,
                                        const std::vector<int>& culprits) {
  std::vector<std::pair<DumpFacts::Stack, std::size_t>> found;
  for (const auto& dump : job.dumps()) {
    const auto call = telling_call(dump.rank, story);
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
  std::vector<DumpFacts::Stack> result;
  for (auto& each : found) result.push_back(std::move(each.first));
  return result;
}

std::vector<std::string> remarks_of_dumps(const DumpedJob& job, const JobStory& story) {
  std::vector<std::string> remarks;
  if (const auto ranks = job.without_dump(); !ranks.empty()) {
    remarks.push_back(fmt::format("{} left no dump: what {} called is not known", describe_ranks(ranks),
                                  ranks.size() == 1 ? "it" : "they"));
  }
  if (const auto ranks = ranks_whose(job, [](const Dump& dump) { return !dump.whole; }); !ranks.empty()) {
    remarks.push_back(
        fmt::format("the recorder of {} no longer had the earliest calls, which are not compared; "
                    "TORCH_FR_BUFFER_SIZE has it keep more",
                    describe_ranks(ranks)));
  }
  for (const auto& group : job.groups()) {
    if (group.members_are_known) continue;
    remarks.push_back(fmt::format("the dumps do not say who belongs to group \"{}\"; it is taken for {}",
                                  group.identity.name, describe_ranks(group.identity.ranks)));
  }
  for (const auto& group : story.groups()) {
    for (const auto& send : group.never_received) remarks.push_back(send + " is complete, and nobody received it");
  }
  const auto& version = job.dumps().front().version;
  if (minor_version(version) > kDumpMinorMost) {
    remarks.push_back(
        fmt::format("the dumps are of format {}, and {}.{} is the last that is known: fields that came "
                    "later are not read",
                    version, kDumpMajor, kDumpMinorMost));
  }
  return remarks;
}

}  // namespace rehearse::sim
