// SPDX-License-Identifier: BSD-3-Clause
// A graph's calls carry the origin of the captured code: its source line, and the label that was set there.
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/comm/functional.h>
#include <rehearse/compile/compile.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace {

using namespace rehearse;
using namespace rehearse::compiler;

using testing::ElementsAre;
using testing::HasSubstr;

int g_line = 0;  // the line of the call in summed()

at::Tensor summed(const at::Tensor& x, const Group& group, const std::string& by) {
  if (by == "functional") {
    g_line = __LINE__ + 1;
    return functional::all_reduce(x, group);
  }
  at::Tensor sum = x.clone();
  g_line = __LINE__ + 1;
  group.allreduce(sum)->wait();
  return sum;
}

std::string here(int line) { return "origin_test.cpp:" + std::to_string(line) + " in "; }

class Origins : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(By, Origins, testing::Values("functional", "c10d"));

TEST_P(Origins, Mismatch_NamesTheLineInTheFunction) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    const Group group = ctx.group();
    auto compiled = compile([group](const at::Tensor& x) { return summed(x * 2, group, GetParam()); },
                            {.backend = "eager", .fullgraph = true});
    compiled(at::ones({3}));
    compiled(at::ones({3}));  // served from the cache
    compiled(at::ones({ctx.rank() == 0 ? 3 : 4}));
  });
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  const std::string text = rehearse::sim::to_text(report);
  EXPECT_THAT(text, HasSubstr(here(g_line)));
  EXPECT_EQ(text.find("communication_step"), std::string::npos);
}

TEST_P(Origins, Hang_NamesTheLineInTheFunction) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    const Group group = ctx.group();
    auto compiled = compile([group](const at::Tensor& x) { return summed(x, group, GetParam()); },
                            {.backend = "eager", .fullgraph = true});
    compiled(at::ones({3}));
    if (ctx.rank() == 0) compiled(at::ones({3}));
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(sim::to_text(report), HasSubstr(here(g_line)));
}

TEST_P(Origins, EachCallSite_IsTheOneOfItsCall) {
  WorldOptions options{.ranks = 2};
  options.call_sites = true;
  World world(options);
  int lines[2] = {};
  world.run([&](RankContext& ctx) {
    const Group group = ctx.group();
    auto compiled = compile([group](const at::Tensor& x) { return summed(x, group, GetParam()); },
                            {.backend = "eager", .fullgraph = true});
    lines[0] = __LINE__ + 1;
    compiled(at::ones({3}));
    lines[1] = __LINE__ + 1;
    compiled(at::ones({3}));
  });
  std::vector<std::vector<int>> found;
  for (const comm::Event& event : world.events().of_rank(1)) {
    std::vector<int> of_event;
    for (const exec::Frame& frame : world.events().call_site(event).user_frames()) {
      if (frame.line == g_line || frame.line == lines[0] || frame.line == lines[1]) of_event.push_back(frame.line);
    }
    found.push_back(std::move(of_event));
  }
  EXPECT_THAT(found, ElementsAre(ElementsAre(g_line, lines[0]), ElementsAre(g_line, lines[1])));
}

TEST_P(Origins, Label_OfTheFunctionStaysWithTheGraph) {
  WorldOptions options{.ranks = 2};
  options.keep_all_events = true;
  World world(options);
  const auto report = world.run([](RankContext& ctx) {
    const Group group = ctx.group();
    auto compiled = compile(
        [group, &ctx](const at::Tensor& x) {
          at::Tensor first = summed(x, group, GetParam());
          const auto label = ctx.label("inner");
          return summed(first, group, GetParam());
        },
        {.backend = "eager", .fullgraph = true, .verify = Verify::Never});
    for (const char* step : {"step 0", "step 1"}) {
      const auto label = ctx.label(step);
      compiled(at::ones({3}));
      ctx.group().barrier()->wait();  // the graph has restored the caller's label
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
  std::vector<std::string> labels;
  for (const comm::Event& event : world.events().of_rank(0)) labels.push_back(world.events().signature(event).label);
  EXPECT_THAT(labels, ElementsAre("step 0", "inner", "step 0", "step 1", "inner", "step 1"));
}

TEST_P(Origins, Label_ThatDiffersAmongRanksIsAMismatch) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    const Group group = ctx.group();
    auto compiled = compile(
        [group, &ctx](const at::Tensor& x, bool last) {
          const auto label = ctx.label(last && ctx.rank() == 1 ? "grad" : "loss");
          return summed(x, group, GetParam());
        },
        {.backend = "eager", .fullgraph = true});
    compiled(at::ones({3}), false);
    compiled(at::ones({3}), true);
  });
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  const std::string text = rehearse::sim::to_text(report);
  EXPECT_THAT(text, HasSubstr("grad"));
  EXPECT_THAT(text, HasSubstr("loss"));
  EXPECT_THAT(text, HasSubstr(here(g_line)));
}

}  // namespace
