// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/page/page_worlds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "golden/report_samples.h"

namespace rehearse::test {
namespace {

using sim::Timeline;

constexpr int kGuilty = 2;

// Draws pseudorandom numbers, the same on every machine.
class Dice {
 public:
  std::int64_t below(std::int64_t most) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<std::int64_t>((state_ >> 33) % static_cast<std::uint64_t>(most));
  }

 private:
  std::uint64_t state_ = 7;
};

class WorldMaker {
 public:
  WorldMaker(int ranks, int calls) : ranks_(ranks), calls_(calls), now_(static_cast<std::size_t>(ranks), 0) {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    timeline_.groups = {{"world", "all ranks", std::move(all)}};
    timeline_.signatures = {{"allreduce", "allreduce(sum, float32[3, 4], cpu)", "fc1.weight"},
                            {"broadcast", "broadcast(root 0, float32[1], cpu)", ""},
                            {"send", "send(float32[8, 4], cpu)", ""},
                            {"recv", "recv(float32[8, 4], cpu)", ""}};
    timeline_.sites = {{},
                       {"train.cpp:31 in train_step", "train.cpp:51 in train"},
                       {"train.cpp:38 in train_step", "train.cpp:51 in train"},
                       {"pipeline.cpp:12 in forward", "train.cpp:51 in train"}};
    timeline_.kinds = {{.group = 0, .signature = 0, .site = 1},
                       {.group = 0, .signature = 1, .site = 2},
                       {.group = 0, .signature = 2, .site = 3, .type = Timeline::CallType::send, .peer_offset = 1},
                       {.group = 0, .signature = 3, .site = 3, .type = Timeline::CallType::receive, .peer_offset = -1}};
    timeline_.span_names = {"forward of submod_0", "backward of submod_0"};
    timeline_.calls.resize(static_cast<std::size_t>(ranks));
    timeline_.spans.resize(static_cast<std::size_t>(ranks));
  }

  PageWorld make() {
    for (int call = 0; call + 1 < calls_; ++call) {
      if (call % 8 == 6) {
        messages();
      } else {
        collective(call % 8 == 3 ? 1 : 0);
      }
    }
    last_call();
    return {report(), std::move(timeline_)};
  }

 private:
  std::vector<Timeline::Call>& calls_of(int rank) { return timeline_.calls[static_cast<std::size_t>(rank)]; }
  std::int64_t& now(int rank) { return now_[static_cast<std::size_t>(rank)]; }

  void work(int rank) {
    const auto begin = now(rank);
    now(rank) += 40'000 + dice_.below(60'000);
    timeline_.spans[static_cast<std::size_t>(rank)].push_back(
        {static_cast<std::uint32_t>(number_ % 2), begin, now(rank)});
  }

  void collective(std::uint32_t kind) {
    for (int rank = 0; rank < ranks_; ++rank) work(rank);
    const auto started = *std::max_element(now_.begin(), now_.end());
    const auto completed = started + 9'000 + dice_.below(4'000);
    ++number_;
    for (int rank = 0; rank < ranks_; ++rank) {
      calls_of(rank).push_back({kind, number_, now(rank), started, completed});
      now(rank) = completed;
    }
  }

  // Even ranks send to the odd ranks after them.
  void messages() {
    ++message_;
    for (int rank = 0; rank + 1 < ranks_; rank += 2) {
      work(rank);
      work(rank + 1);
      const auto started = std::max(now(rank), now(rank + 1));
      calls_of(rank).push_back({2, message_, now(rank), started, started + 5'000});
      calls_of(rank + 1).push_back({3, message_, now(rank + 1), started, started + 5'000});
      now(rank) = now(rank + 1) = started + 5'000;
    }
  }

  void last_call() {
    ++number_;
    for (int rank = 0; rank < ranks_; ++rank) {
      work(rank);
      if (rank != kGuilty) calls_of(rank).push_back({0, number_, now(rank)});
    }
  }

  Report report() {
    const auto call = fmt::format("allreduce #{} on group \"world\"", number_);
    Report report = golden::base(Verdict::deadlock, call + ": missing rank 2", ranks_);
    report.end_time = kTimeZero + VirtualDuration(*std::max_element(now_.begin(), now_.end()) + 100'000);
    const auto before = fmt::format("allreduce #{} on group \"world\"", number_ - 1);
    for (int rank = 0; rank < ranks_; ++rank) {
      RankLine line{rank, RankOutcome::blocked, report.end_time, call, before, "train.cpp:31 in train_step", {kGuilty}};
      if (rank == kGuilty)
        line = {rank, RankOutcome::returned, kTimeZero + VirtualDuration(now(rank)), "", before, "", {}};
      report.rank_lines.push_back(std::move(line));
    }
    for (const auto& calls : timeline_.calls) report.operations += calls.size();
    return report;
  }

  const int ranks_, calls_;
  Dice dice_;
  std::vector<std::int64_t> now_;
  std::uint32_t number_ = 0, message_ = 0;
  Timeline timeline_;
};

}  // namespace

PageWorld skips_a_call(int ranks, int calls) { return WorldMaker(ranks, calls).make(); }

PageWorld shows_everything(const std::string& folder) {
  auto world = skips_a_call(8, 24);
  auto& [report, timeline] = world;
  timeline.files = {{"train.cpp", folder + "/train.txt"}};
  auto difference = golden::mismatch_report().differences.front();
  difference.others = {{{5}, "barrier()", "train.cpp:38 in train_step"}};
  difference.fields.push_back({"op", "allreduce", "allreduce", {"barrier"}});
  report.differences = {difference};
  report.findings = {{"rank 1 wrote to \"fc1.weight\" at train.cpp:32 in train_step while allreduce #4 used it",
                      {1},
                      {"called at train.cpp:31 in train_step", "written at train.cpp:32 in train_step"}}};
  const auto at = [](std::int64_t microseconds) { return golden::at_us(microseconds); };
  report.faults = {
      {"crash rank=5 at=allreduce#4", false, 1, {{5, "allreduce #4 on group \"world\"", at(420), at(560)}}, ""},
      {"pause rank=1 at=1 s", true, 0, {}, "the run had ended before"}};
  report.call_places = golden::deadlock_report().call_places;
  report.call_counts = {{"world", "train.cpp:31 in train_step", {{21, {0, 1, 3, 4, 5, 6, 7}}, {20, {2}}}}};
  timeline.calls[5][3].failed = true;
  timeline.calls[5].back().ended = timeline.calls[5].back().created + 20'000;
  timeline.calls[5].back().failed = true;
  report.remarks = {"nobody waited for barrier #3 on group \"world\" of rank 0 at train.cpp:41 in train_step"};
  report.checks = {{"loss is finite", 140}};
  report.last_events = golden::deadlock_report().last_events;
  return world;
}

}  // namespace rehearse::test
