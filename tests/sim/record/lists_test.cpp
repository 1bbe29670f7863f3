// SPDX-License-Identifier: BSD-3-Clause
#include <limits>
#include <sstream>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

#include "record/call_list.h"
#include "record/result_list.h"

// Contract: a run is recorded for a comparison with a run in another mode. The record contains no time and no device.
// It has every bit of small tensors, and comes back unchanged from its file.
namespace rehearse::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string text_of(const std::vector<ListedResult>& results) {
  std::ostringstream out;
  write_results(out, results);
  return out.str();
}

TEST(ResultList, ValuesComeBackWithEveryBit) {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  const auto written = listed_results({{0, "loss", at::full({}, 0.1, at::kFloat)},
                                       {0, "loss", at::full({}, nan, at::kDouble)},
                                       {1, "weights", at::arange(6, at::kLong).view({2, 3}).t()},
                                       {1, "nothing", at::zeros({0})}});
  const auto read = results_from_json(text_of(written));
  ASSERT_EQ(read.size(), 4u);
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].rank, written[i].rank);
    EXPECT_EQ(read[i].name, written[i].name);
    EXPECT_EQ(read[i].dtype, written[i].dtype);
    EXPECT_EQ(read[i].sizes, written[i].sizes);
    EXPECT_EQ(read[i].hash, written[i].hash);
    EXPECT_EQ(read[i].bytes, written[i].bytes);
    EXPECT_TRUE(read[i].is_whole());
  }
  EXPECT_EQ(read[0].index, 0u);
  EXPECT_EQ(read[1].index, 1u);
  EXPECT_NE(read[1].least, read[1].least);
  EXPECT_EQ(read[2].dtype, "int64");
  EXPECT_THAT(read[2].sizes, ElementsAre(3, 2));
  EXPECT_EQ(read[2].most, 5);
  EXPECT_EQ(read[2].bytes.substr(8, 1), "\3");  // row by row, whatever the strides
}

TEST(ResultList, WhatIsTooLarge_IsKeptAsHashAndFigures) {
  const auto value = at::full({5}, 2.0, at::kFloat);
  const std::vector<RankResult> results{{0, "first", value}, {0, "second", value}, {0, "large", at::full({9}, 1.0)}};
  const auto read = results_from_json(text_of(listed_results(results, {.tensor_bytes = 32, .file_bytes = 30})));
  EXPECT_TRUE(read[0].is_whole());
  EXPECT_FALSE(read[1].is_whole());
  EXPECT_FALSE(read[2].is_whole());
  EXPECT_EQ(read[1].hash, read[0].hash);
  EXPECT_EQ(read[2].least, 1.0);
  EXPECT_EQ(read[2].most, 1.0);
  EXPECT_EQ(read[2].norm, 3.0);
}

TEST(ResultList, OtherTexts_AreRefused) {
  const auto refused = [](const char* text) -> std::string {
    try {
      results_from_json(text);
      return "nothing was thrown";
    } catch (const ReportFormatError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refused("{"), "is no list of results of rehearse: not JSON, see byte 2");
  EXPECT_EQ(refused("{}"), "is no list of results of rehearse: rehearse_results is missing");
  EXPECT_EQ(refused(R"({"rehearse_results": 7})"), "is a list of results of format 7; this rehearse reads format 1");
  EXPECT_THAT(refused(R"({"rehearse_results": 1, "results": [{"rank": 0}]})"), HasSubstr("results[0].name is missing"));
}

TEST(CallList, IsEachRanksCalls_WithoutTimesAndDevices) {
  World world({.ranks = 2, .keep_all_events = true});
  world.run([](RankContext& ctx) {
    auto value = at::full({2, 3}, 1.0, at::kFloat);
    {
      const auto label = ctx.label("a, cpu) thing");
      ctx.group().allreduce(value)->wait();
    }
    if (ctx.rank() == 0) {
      ctx.group().send(value, 1)->wait();
    } else {
      ctx.group().recv(value, 0)->wait();
    }
  });
  std::ostringstream out;
  write_calls(out, listed_calls(world.events()));
  const auto calls = calls_from_json(out.str());
  EXPECT_EQ(calls, listed_calls(world.events()));
  ASSERT_EQ(calls.size(), 4u);
  for (const auto& call : calls) {
    EXPECT_EQ(call.group, "world");
    EXPECT_EQ(call.sequence, 1u);
    if (!call.point_to_point) {
      EXPECT_EQ(call.call, "allreduce(sum, float32[2, 3]) label=\"a, cpu) thing\"");
      EXPECT_THAT(call.tensors, ElementsAre("in float32[2, 3]", "out float32[2, 3]"));
    } else if (call.rank == 0) {
      EXPECT_EQ(call.call, "send(float32[2, 3]) to rank 1 with tag 0");
    } else {
      EXPECT_EQ(call.call, "recv(float32[2, 3]) from rank 0 with tag 0");
    }
  }
}

}  // namespace
}  // namespace rehearse::sim
