// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include <rehearse/job/report.h>

// Hand-made reports of all verdicts, with the fields that a run fills in.
namespace rehearse::golden {

inline VirtualTime at_us(std::int64_t microseconds) { return kTimeZero + std::chrono::microseconds(microseconds); }

inline Report base(Verdict verdict, std::string headline, int ranks) {
  Report report;
  report.verdict = verdict;
  report.headline = std::move(headline);
  report.program = "lm_ddp";
  report.ranks = ranks;
  report.seed = 7;
  report.schedule = "random";
  report.version = "0.1.0";
  report.identity = 0x00c0ffee12345678;
  report.decisions = 412;
  report.switches = 1893;
  report.operations = 56;
  report.end_time = at_us(1203);
  report.replay = "./lm_ddp replay rehearse-out/lm_ddp/run.rlog";
  report.files = {"rehearse-out/lm_ddp/run.rlog", "rehearse-out/lm_ddp/report.json", "rehearse-out/lm_ddp/trace.json"};
  return report;
}

inline RankLine line(int rank, RankOutcome state, std::int64_t at, std::string doing = "", std::string last = "",
                     std::string where = "", std::vector<int> waits_for = {}) {
  return {rank, state, at_us(at), std::move(doing), std::move(last), std::move(where), std::move(waits_for), ""};
}

inline Report ok_report() {
  Report report = base(Verdict::ok, "4 ranks returned after 1.203 ms of virtual time", 4);
  for (int rank = 0; rank < 4; ++rank) report.rank_lines.push_back(line(rank, RankOutcome::returned, 1200 + rank));
  report.checks = {{"loss is finite", 80}, {"replicas agree", 20}};
  report.seed = 0x8f3a5566778899aa;
  return report;
}

inline Report deadlock_report() {
  Report report =
      base(Verdict::deadlock,
           "rank 2 is out of step from #5 of group \"world\" on: it left out the allreduce at train.cpp:38 in "
           "train_step, which ranks 0-1,3-7 made; allreduce #7 on group \"world\": rank 2 has ended and will "
           "never come",
           8);
  report.causes = {{Cause::Kind::out_of_step, {2}, "#5 of group \"world\""}};
  for (int rank = 0; rank < 8; ++rank) {
    if (rank == 2) {
      report.rank_lines.push_back(line(rank, RankOutcome::returned, 903, "", "allreduce #6 on group \"world\""));
      report.rank_lines.back().last_where = "train.cpp:44 in train_step";
    } else {
      report.rank_lines.push_back(line(rank, RankOutcome::blocked, 1203, "allreduce #7 on group \"world\"",
                                       "allreduce #6 on group \"world\"", "train.cpp:44 in train_step", {2}));
    }
  }
  for (int rank = 0; rank < 8; ++rank) {
    if (rank == 2) continue;
    report.last_events.push_back(fmt::format(
        "1.203 ms  rank {}  allreduce #7 on group \"world\"  (never completes)  at train.cpp:44 in train_step", rank));
  }
  report.call_places = {
      {"world", 5, {{{0, 1, 3, 4, 5, 6, 7}, "train.cpp:38 in train_step"}, {{2}, "train.cpp:41 in train_step"}}}};
  return report;
}

// Two ranks use two groups in opposite order.
inline Report cycle_report() {
  Report report =
      base(Verdict::deadlock,
           "ranks 0 -> 1 -> 0 wait for each other: rank 0 in allreduce #1 on group \"tensor_parallel\", rank "
           "1 in allreduce #1 on group \"data_parallel\"",
           2);
  report.rank_lines = {
      line(0, RankOutcome::blocked, 40, "allreduce #1 on group \"tensor_parallel\"", "", "model.cpp:118 in forward",
           {1}),
      line(1, RankOutcome::blocked, 40, "allreduce #1 on group \"data_parallel\"", "", "ddp.cpp:77 in backward", {0}),
  };
  report.wait_cycle = {
      "rank 0 waits for rank 1 (allreduce #1 on group \"tensor_parallel\") at model.cpp:118 in forward",
      "rank 1 waits for rank 0 (allreduce #1 on group \"data_parallel\") at ddp.cpp:77 in backward"};
  report.last_events = {
      "40 us  rank 0  allreduce #1 on group \"tensor_parallel\"  (never completes)  at model.cpp:118 in forward",
      "40 us  rank 1  allreduce #1 on group \"data_parallel\"  (never completes)  at ddp.cpp:77 in backward"};
  return report;
}

inline Report mismatch_report() {
  Report report =
      base(Verdict::mismatch,
           "rank 3 called allreduce(max, float32[3, 4], cpu) label=\"fc1.weight\" while ranks 0-2 called "
           "allreduce(sum, float32[3, 4], cpu) label=\"fc1.weight\" as #7 of group \"world\": reduce_op max, not sum",
           4);
  for (int rank = 0; rank < 3; ++rank) {
    report.rank_lines.push_back(
        line(rank, RankOutcome::blocked, 700,
             "allreduce #7 of \"fc1.weight\" on group \"world\" (the ranks' calls do not match)",
             "broadcast #6 on group \"world\"", "train.cpp:41 in train_step"));
  }
  report.rank_lines.push_back(line(3, RankOutcome::blocked, 700,
                                   "allreduce #7 of \"fc1.weight\" on group \"world\" (the ranks' calls do not match)",
                                   "broadcast #6 on group \"world\"", "train.cpp:44 in train_step"));
  Difference difference;
  difference.group = "world";
  difference.sequence = 7;
  difference.first = {
      {0, 1, 2}, "allreduce(sum, float32[3, 4], cpu) label=\"fc1.weight\"", "train.cpp:41 in train_step"};
  difference.second = {{3}, "allreduce(max, float32[3, 4], cpu) label=\"fc1.weight\"", "train.cpp:44 in train_step"};
  difference.fields = {{"reduce_op", "sum", "max"}};
  report.differences = {difference};
  return report;
}

inline Report rank_failed_report() {
  Report report = base(Verdict::rank_failed,
                       "rank 1: The size of tensor a (3) must match the size of tensor b (4); rank 2 failed, too: an "
                       "exception of type int: 42",
                       3);
  report.rank_lines = {
      line(0, RankOutcome::stopped, 12),
      line(1, RankOutcome::failed, 12,
           "The size of tensor a (3) must match the size of tensor b (4)\n\nException raised from "
           "infer_size_impl:\n"
           "frame #0: one\nframe #1: two\nframe #2: three\nframe #3: four",
           "", "model.cpp:118 in forward"),
      line(2, RankOutcome::failed, 12, "an exception of type int: 42", "", "loader.cpp:31 in next_batch"),
  };
  return report;
}

inline Report nondeterminism_report() {
  Report report = base(
      Verdict::nondeterminism,
      "two runs of seed 7 differ, so the program uses something outside of the seed (a clock, an "
      "address, a thread): the first call that differs is rank 0's broadcast(root=0, float32[4], cpu) as #10 of "
      "group \"world\" at t=1.2 ms at train.cpp:52 in step, only in the first run; decision 41 (which rank runs "
      "next): the first run chose option 3 of 8 (rank 0, whose last call was allreduce(sum, float32[4], cpu) as #9 of "
      "group \"world\" at train.cpp:41 in step), the second run option 5 of 8 (rank 1, whose last call was "
      "allreduce(sum, float32[4], cpu) as #9 of group \"world\" at train.cpp:41 in step) at t=1.2 ms",
      2);
  report.rank_lines = {line(0, RankOutcome::returned, 1203), line(1, RankOutcome::returned, 1203)};
  return report;
}

inline Report livelock_report() {
  Report report = base(Verdict::livelock,
                       "rank 0 polls allreduce #3 on group \"world\" forever, at train.cpp:60 in poll_until_done: rank "
                       "1 has ended without that call (stopped after 500000 polls, because no rank is left to change "
                       "their answer)",
                       2);
  report.rank_lines = {line(0, RankOutcome::blocked, 1203,
                            "allreduce #3 on group \"world\" (1 of 2 ranks has called it), polled without a change",
                            "broadcast #2 on group \"world\"", "train.cpp:60 in poll_until_done", {1}),
                       line(1, RankOutcome::returned, 1203, "", "broadcast #2 on group \"world\"")};
  report.rank_lines[1].last_where = "train.cpp:38 in train_step";
  return report;
}

inline Report step_budget_report() {
  Report report = base(Verdict::step_budget,
                       "more than 1000000 switches between ranks; ranks 0-1 were still running at train.cpp:60 in "
                       "wait_for_others; look for an endless loop there or, if the program needs more switches, raise "
                       "[world] steps_max (WorldOptions::steps_max)",
                       2);
  for (int rank = 0; rank < 2; ++rank) {
    report.rank_lines.push_back(line(rank, RankOutcome::stopped, 1203, "", "allreduce #9 on group \"world\"",
                                     "train.cpp:60 in wait_for_others"));
  }
  report.switches = 1'000'001;
  return report;
}

inline Report check_failed_report() {
  Report report = base(Verdict::check_failed, "rank 0: check \"loss is below 3\" did not hold: 4.25 in step 7", 2);
  report.rank_lines = {line(0, RankOutcome::failed, 900, "check \"loss is below 3\" did not hold: 4.25 in step 7", "",
                            "train.cpp:90 in train_step"),
                       line(1, RankOutcome::stopped, 900)};
  report.checks = {{"loss is finite", 20}};
  return report;
}

inline Report state_finding_report() {
  const std::string headline =
      "replicas differ in check #4: rank 1 has a different \"fc1.weight\" than ranks 0,2 (12 of 32 elements, by up to "
      "0.125 at [0, 3]: 0.5, not 0.375)";
  Report report = base(Verdict::check_failed, headline, 3);
  report.rank_lines = {line(0, RankOutcome::stopped, 900), line(1, RankOutcome::stopped, 900),
                       line(2, RankOutcome::stopped, 900)};
  report.findings = {
      {headline,
       {1},
       {"in check #3 all ranks were equal",
        "first operation that differs: aten::add_ on \"fc1.weight\" at train.cpp:41 in step: rank 1 has a different "
        "result, because its arguments differ: alpha=-0.1 on ranks 0,2, alpha=-0.2 on rank 1"}}};
  report.checks = {{"replicas", 3}};
  return report;
}

inline Report timeout_report() {
  Report report =
      base(Verdict::timeout,
           "rank 1 was still in a sleep at loader.cpp:12 in refill; rank 0 waited for it in allreduce #2 on "
           "group \"world\" until the timeout at 30 s",
           2);
  report.rank_lines = {
      line(0, RankOutcome::failed, 30'000'000,
           "allreduce #2 on group \"world\": Timed out waiting 30000ms of virtual time; missing rank 1",
           "allreduce #1 on group \"world\"", "train.cpp:41 in step"),
      line(1, RankOutcome::blocked, 30'000'000, "a sleep", "allreduce #1 on group \"world\"",
           "loader.cpp:12 in refill")};
  report.rank_lines[0].gave_up_on = {1};
  report.end_time = at_us(30'000'000);
  return report;
}

inline Report interrupted_report() {
  Report report =
      base(Verdict::interrupted,
           "ended by SIGINT (Interrupt): after 1893 switches, at 1.203 ms of virtual time; rank 1 was still running at "
           "train.cpp:60 in wait_for_others; 1 of 2 ranks had returned",
           2);
  report.rank_lines = {
      line(0, RankOutcome::returned, 900, "", "allreduce #1 on group \"world\""),
      line(1, RankOutcome::stopped, 1203, "", "allreduce #1 on group \"world\"", "train.cpp:60 in wait_for_others")};
  report.rank_lines[0].last_where = "train.cpp:41 in step";
  return report;
}

// The process of the run died, so another process wrote this report from the crash record.
inline Report crashed_report() {
  Report report =
      base(Verdict::crashed, "rank 1 ended the process by SIGSEGV (Segmentation fault) at model.cpp:118 in forward", 2);
  report.rank_lines = {
      line(0, RankOutcome::stopped, 12),
      line(1, RankOutcome::failed, 12, "SIGSEGV (Segmentation fault)", "", "model.cpp:118 in forward")};
  return report;
}

inline Report fault_not_fired_report() {
  Report report =
      base(Verdict::fault_not_fired, "crash rank=3 at=allreduce#40: no call fitted; rank 3 made 12 calls", 4);
  for (int rank = 0; rank < 4; ++rank) report.rank_lines.push_back(line(rank, RankOutcome::returned, 1200 + rank));
  report.faults = {{"crash rank=3 at=allreduce#40", false, 0, {}, "no call fitted; rank 3 made 12 calls"}};
  return report;
}

inline Report out_of_memory_report() {
  Report report = base(Verdict::out_of_memory,
                       "rank 1: out of memory: an allocation of 512MiB does not fit, with 7.8GiB of 8GiB in use", 2);
  report.rank_lines = {line(0, RankOutcome::stopped, 12),
                       line(1, RankOutcome::failed, 12,
                            "out of memory: an allocation of 512MiB does not fit, with 7.8GiB of 8GiB in use", "",
                            "model.cpp:118 in forward")};
  return report;
}

// Has long lists: 512 ranks with different lines, many edges, events and differences.
inline Report large_report() {
  Report report =
      base(Verdict::deadlock,
           "ranks 0 -> 1 -> ... -> 0 wait for each other: rank 0 in send #1 on group \"world\" to rank 1, ...", 512);
  for (int rank = 0; rank < 512; ++rank) {
    report.rank_lines.push_back(line(rank, RankOutcome::blocked, rank,
                                     fmt::format("send #1 on group \"world\" to rank {}", (rank + 1) % 512), "",
                                     "ring.cpp:12 in step", {(rank + 1) % 512}));
    report.wait_cycle.push_back(
        fmt::format("rank {} waits for rank {} (send #1 on group \"world\")", rank, (rank + 1) % 512));
  }
  report.rank_lines[300] = line(300, RankOutcome::failed, 2, "out of memory", "", "ring.cpp:9 in step");
  for (int event = 0; event < 10; ++event)
    report.last_events.push_back(fmt::format("{} us  rank {}  send", event, event));
  report.differences.assign(5, mismatch_report().differences.front());
  return report;
}

struct Sample {
  const char* name;
  Report report;
};

inline std::vector<Sample> samples() {
  return {
      {"ok", ok_report()},
      {"rank_failed", rank_failed_report()},
      {"mismatch", mismatch_report()},
      {"deadlock", deadlock_report()},
      {"deadlock_cycle", cycle_report()},
      {"nondeterminism", nondeterminism_report()},
      {"livelock", livelock_report()},
      {"step_budget", step_budget_report()},
      {"check_failed", check_failed_report()},
      {"state_finding", state_finding_report()},
      {"timeout", timeout_report()},
      {"interrupted", interrupted_report()},
      {"crashed", crashed_report()},
      {"fault_not_fired", fault_not_fired_report()},
      {"out_of_memory", out_of_memory_report()},
  };
}

}  // namespace rehearse::golden
