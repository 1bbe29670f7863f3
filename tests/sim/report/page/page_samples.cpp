// SPDX-License-Identifier: BSD-3-Clause
// page_samples FOLDER: writes the pages that page_test.py opens in a browser, each beside the report.json of its run.
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
  sim::write_report_page(page, std::move(run));
}

void leave(const path& folder, const std::string& name, const Report& report) {
  leave(folder, name, report, {.report = report});
}

void leave(const path& folder, const std::string& name, PageWorld world, sim::Json compiled = sim::Json::array()) {
  leave(folder, name, world.report,
        {.report = world.report, .culprits = {2}, .timeline = &world.timeline, .compiled = std::move(compiled)});
}

// The rows of the page's table of calls, as it should show them: cells with a bar between them.
void leave_calls(const path& file, const sim::Timeline& timeline) {
  const auto text = [](std::int64_t nanoseconds) { return sim::format_time(kTimeZero + VirtualDuration(nanoseconds)); };
  std::ofstream out(file, std::ios::binary);
  for (std::size_t rank = 0; rank < timeline.calls.size(); ++rank) {
    for (const auto& call : timeline.calls[rank]) {
      const auto& kind = timeline.kinds[call.kind];
      const auto& [name, fingerprint, label] = timeline.signatures[kind.signature];
      out << fmt::format("{}|{} #{}{}|{}|{}|{}|{}|{}\n", rank, name, call.number,
                         label.empty() ? "" : fmt::format(" of \"{}\"", label), timeline.groups[kind.group].name,
                         text(call.created),
                         call.started == sim::Timeline::kNever ? "to the end" : text(call.started - call.created),
                         call.completed == sim::Timeline::kNever ? "never ended" : text(call.completed - call.started),
                         timeline.sites[kind.site].front());
    }
  }
}

// Texts of programs that would like to be more than texts.
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
  for (auto& line : world.report.rank_lines) line.doing = line.where = evil;
  return world;
}

sim::Json compiled() {
  const auto compile = [](int call, const char* why) {
    return sim::Json{{"call", call}, {"why", why}, {"where", "train.cpp:27 in train_step"}, {"communicates", false}};
  };
  const auto function = [](sim::Json ranks, int calls, sim::Json compiles) {
    return sim::Json{{"name", "forward"},
                     {"ranks", std::move(ranks)},
                     {"calls", calls},
                     {"meets", true},
                     {"compiles", std::move(compiles)}};
  };
  return sim::Json::array(
      {function(sim::Json::array({0, 0, 2, 7}), 20, sim::Json::array({compile(1, "")})),
       function(sim::Json::array({1, 1}), 20,
                sim::Json::array({compile(1, ""), compile(3, "x.size(0) is 4, guard x.size(0) == 8 of entry 0")}))});
}

void leave_all(const path& folder, const std::string& sources) {
  for (const auto& sample : golden::samples()) leave(folder, std::string("report_") + sample.name, sample.report);
  leave(folder, "report_large", golden::large_report());
  leave(folder, "hostile", hostile());
  leave(folder, "everything", shows_everything(sources), compiled());
  leave_calls(folder / "everything.calls", shows_everything(sources).timeline);
  for (const int ranks : {8, 64, 1024}) leave(folder, fmt::format("ranks_{}", ranks), skips_a_call(ranks, 1000));
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
