// SPDX-License-Identifier: BSD-3-Clause
// page_samples FOLDER SOURCES: writes the pages that browser_test.py opens into FOLDER. The page of a run has the
// report of the run beside it, as JSON. SOURCES contains train.txt, the source file that a page shows.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/sim/format_time.h>

#include "golden/report_samples.h"
#include "report/page/report_page.h"
#include "report/page/timeline_json.h"
#include "sim/report/page/page_worlds.h"

namespace rehearse::test {
namespace {

using std::filesystem::path;

void leave(const path& folder, const std::string& name, const Report& report, sim::PageRun run) {
  std::ofstream(folder / (name + ".json"), std::ios::binary) << sim::to_json(report);
  std::ofstream page(folder / (name + ".html"), std::ios::binary);
  sim::write_report_page(page, report, sim::page_run(std::move(run)));
}

void leave(const path& folder, const std::string& name, const Report& report) {
  leave(folder, name, report, {.report = report});
}

void leave(const path& folder, const std::string& name, PageWorld world, sim::Json compiled = sim::Json::array()) {
  leave(folder, name, world.report,
        {.report = world.report, .culprits = {2}, .timeline = &world.timeline, .compiled = std::move(compiled)});
}

// Writes the rows that the page's table of calls must show. A bar separates the cells of a row.
void leave_calls(const path& file, const sim::Timeline& timeline) {
  const auto text = [](std::int64_t nanoseconds) { return sim::format_time(kTimeZero + VirtualDuration(nanoseconds)); };
  constexpr auto kNever = sim::Timeline::kNever;
  const auto waited = [&](const sim::Timeline::Call& call) {
    const auto until = call.started == kNever ? call.ended : call.started;
    return until == kNever ? "to the end" : text(until - call.created);
  };
  const auto took = [&](const sim::Timeline::Call& call) {
    if (call.ended == kNever) return std::string("never ended");
    if (call.started == kNever) return std::string("failed");
    return (call.failed ? "failed after " : "") + text(call.ended - call.started);
  };
  std::ofstream out(file, std::ios::binary);
  for (std::size_t rank = 0; rank < timeline.calls.size(); ++rank) {
    for (const auto& call : timeline.calls[rank]) {
      const auto& kind = timeline.kinds[call.kind];
      const auto& [name, fingerprint, label] = timeline.signatures[kind.signature];
      out << fmt::format("{}|{} #{}{}|{}|{}|{}|{}|{}\n", rank, name, call.number,
                         label.empty() ? "" : fmt::format(" of \"{}\"", label), timeline.groups[kind.group].name,
                         text(call.created), waited(call), took(call), timeline.sites[kind.site].front());
    }
  }
}

// Texts of a program that contain markup and scripts.
PageWorld hostile() {
  const std::string evil =
      "</script><script>document.title = 'taken'</script><!-- <img src=x onerror=\"document.title='taken'\">";
  auto world = skips_a_call(4, 10);
  world.timeline.signatures[0].label = evil;
  world.timeline.groups[0].name = evil;
  world.timeline.sites[1] = {evil};
  world.report.headline = evil;
  world.report.program = evil + std::string("\x01\xff", 2);
  world.report.replay = evil;
  world.report.remarks = {evil + "\x1b[31m"};
  for (auto& line : world.report.rank_lines) line.doing = evil, line.where = evil;
  return world;
}

sim::Json compiled() {
  const auto compile = [](int call, const char* why) {
    auto json =
        sim::Json{{"call", call}, {"why", why}, {"where", "train.cpp:27 in train_step"}, {"communicates", false}};
    json["times_ns"] = sim::Json::array({call * 100'000});
    return json;
  };
  const auto function = [](sim::Json ranks, int calls, sim::Json compiles) {
    return sim::Json{{"name", "forward"},
                     {"ranks", std::move(ranks)},
                     {"calls", calls},
                     {"uses_collectives", true},
                     {"compiles", std::move(compiles)}};
  };
  return sim::Json::array(
      {function(sim::Json::array({0, 0, 2, 7}), 20, sim::Json::array({compile(1, "")})),
       function(sim::Json::array({1, 1}), 20,
                sim::Json::array({compile(1, ""), compile(3, "x.size(0) is 4, guard x.size(0) == 8 of entry 0")}))});
}

void leave_sweep(const path& folder) {
  auto seeds = sim::Json::array(), first = sim::Json::array(), second = sim::Json::array();
  for (int seed = 1; seed <= 30; ++seed) {
    const int bug = seed % 5 == 2 ? 1 : seed % 11 == 0 ? 2 : 0;
    seeds.push_back(sim::Json::array({std::to_string(seed), bug}));
    const sim::Json failed{{"seed", std::to_string(seed)}, {"page", fmt::format("seed {}/report.html", seed)}};
    if (bug != 0) (bug == 1 ? first : second).push_back(failed);
  }
  const auto bug = [](const char* verdict, const char* headline, const char* where, sim::Json of) {
    return sim::Json{{"verdict", verdict},
                     {"headline", headline},
                     {"culprit", sim::Json::array({where})},
                     {"faults", sim::Json::array({"crash rank=3 at=allreduce#12"})},
                     {"replay", "./lm_ddp replay rehearse-out/lm_ddp/seed-7/run.rlog"},
                     {"count", of.items().size()},
                     {"seeds", of}};
  };
  sim::Json sweep{
      {"program", "train"},
      {"expect", "OK"},
      {"asked", "1..40"},
      {"ran", 30},
      {"failed", 7},
      {"interrupted", false},
      {"bugs", sim::Json::array({bug("DEADLOCK", "allreduce #7: missing rank 2", "train.cpp:31 in train_step", first),
                                 bug("CHECK FAILED", "<b>replicas</b> differ", "train.cpp:20 in check", second)})},
      {"seeds", seeds}};
  std::ofstream out(folder / "sweep.html", std::ios::binary);
  sim::write_page(out,
                  {"7 of 30 seeds failed", "FAILED", sim::PageTone::bad, "7 of 30 seeds failed, by 2 bugs", "FAILED"},
                  {{"kind", "sweep"}, {"sweep", sweep}});
}

// A simulation that deadlocks and a real run that does not.
void leave_validation(const path& folder) {
  const auto first = skips_a_call(4, 12), second = skips_a_call(4, 10);
  const auto run_of = [](const PageWorld& world, const char* name) {
    auto run = sim::page_run({.report = world.report, .culprits = {2}, .timeline = &world.timeline});
    run["name"] = name;
    return run;
  };
  const auto row = [](const char* mode, const char* verdict, int calls) {
    return sim::Json{{"mode", mode},   {"verdict", verdict}, {"culprits", sim::Json::array({2})},
                     {"calls", calls}, {"results", 4},       {"end_time_ns", 1'500'000}};
  };
  sim::Json validation{{"program", "train"},
                       {"ranks", 4},
                       {"seed", "0x7"},
                       {"runs", sim::Json::array({row("simulation", "DEADLOCK", 47), row("gloo", "OK", 39)})},
                       {"outcome_differences", sim::Json::array({"the verdict is DEADLOCK by simulation, OK by gloo"})},
                       {"calls_alike", 38},
                       {"call_differences", sim::Json::array()},
                       {"results_bit_equal", 3},
                       {"results_within_tolerance", 1},
                       {"result_differences", sim::Json::array()}};
  std::ofstream out(folder / "validation.html", std::ios::binary);
  sim::write_page(out, {"DISAGREE: train", "DISAGREE", sim::PageTone::bad, "the verdict differs", "DISAGREE"},
                  {{"kind", "validation"},
                   {"validation", validation},
                   {"runs", sim::Json::array({run_of(first, "simulation"), run_of(second, "gloo")})}});
}

// The report of a job in which all ranks but one left dumps.
Report of_dumps() {
  const std::string own = "step at /job/train.py:41";
  auto report = golden::deadlock_report();
  report.identity = report.decisions = report.switches = 0;
  report.dumps = DumpFacts{.format = "2.10",
                           .ranks = {0, 1, 3, 4, 5, 6, 7},
                           .without_dump = {2},
                           .culprits = {2},
                           .stacks = {{{0, 1}, "allreduce #7", {own, "all_reduce at c10d.py:9"}, {own}}}};
  return report;
}

// All calls are complete on the ranks that left dumps.
Report partial_ok() {
  Report report;
  report.headline =
      "as far as is known, all 2 calls in the dumps are complete; rank 1 left no dump, so look there first";
  report.ranks = 2;
  report.rank_lines = {{0, RankOutcome::stopped, RankLine::kNotKnown, "it was in code of its own", "", "", {}},
                       {1, RankOutcome::stopped, RankLine::kNotKnown, "left no dump", "", "", {}}};
  report.dumps = DumpFacts{.format = "2.10", .ranks = {0}, .without_dump = {1}, .culprits = {}, .stacks = {}};
  return report;
}

// Ranks of a job made different groups with one name. The dumps do not tell which calls of new_group() made these
// groups.
Report of_new_group() {
  auto report = of_dumps();
  report.verdict = Verdict::mismatch;
  report.headline = "new_group() of group \"1\": ranks 0,3 passed {0, 3}, ranks 1-2 passed {1, 2}";
  report.differences = {{"",
                         0,
                         {{0, 3}, "new_group() of group \"1\" {0, 3}", ""},
                         {{1, 2}, "new_group() of group \"1\" {1, 2}", ""},
                         {},
                         {{"ranks", "{0, 3}", "{1, 2}"}}}};
  return report;
}

// The calls that would wait forever fail at their timeout, long after all other calls.
PageWorld timed_out() {
  auto world = skips_a_call(4, 10);
  constexpr std::int64_t kEnd = 1'800'000'000'000;
  world.report.end_time = kTimeZero + VirtualDuration(kEnd);
  for (auto& calls : world.timeline.calls) {
    if (calls.back().ended != sim::Timeline::kNever) continue;
    calls.back().ended = kEnd;
    calls.back().failed = true;
  }
  return world;
}

void leave_all(const path& folder, const std::string& sources) {
  for (const auto& sample : golden::samples()) leave(folder, std::string("report_") + sample.name, sample.report);
  leave(folder, "report_dumps", of_dumps());
  leave(folder, "new_group", of_new_group());
  leave(folder, "timed_out", timed_out());
  leave(folder, "partial_ok", partial_ok());
  leave(folder, "report_large", golden::large_report());
  leave(folder, "hostile", hostile());
  leave(folder, "everything", shows_everything(sources), compiled());
  leave_calls(folder / "everything.calls", shows_everything(sources).timeline);
  for (const int ranks : {8, 64, 1024}) leave(folder, fmt::format("ranks_{}", ranks), skips_a_call(ranks, 1000));
  leave_sweep(folder);
  leave_validation(folder);
  leave(folder, "ranks_65536", skips_a_call(65536, 12));
}

}  // namespace
}  // namespace rehearse::test

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: page_samples FOLDER SOURCES\n";
    return 64;
  }
  std::filesystem::create_directories(argv[1]);
  rehearse::test::leave_all(argv[1], argv[2]);
  return 0;
}
