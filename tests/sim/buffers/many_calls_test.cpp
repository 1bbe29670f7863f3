// SPDX-License-Identifier: BSD-3-Clause
// Contract: the checkers treat thousands of calls in flight like one, and the cost per call does not grow with their
// number.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "bench/cpu_time.h"
#include "checked_world.h"

// Outside namespace rehearse, because without line tables, reports take code of that namespace for library code.
namespace checked_programs {
namespace {

using namespace rehearse;
using namespace rehearse::test;

constexpr int kMany = 1'000;

// The memory that all calls of a rank share, and the calls that use it.
struct Program {
  const char* name;
  at::Tensor (*memory)(std::int64_t calls);
  Work (*call)(RankContext& ctx, const at::Tensor& memory, std::int64_t i);
};

Work gather(RankContext& ctx, const at::Tensor& input, std::vector<at::Tensor> outputs) {
  return ctx.group().allgather(outputs, input);
}

constexpr Program kPrograms[] = {
    {"all-gathers of one input", [](std::int64_t) { return at::ones({4}); },
     [](RankContext& ctx, const at::Tensor& memory, std::int64_t) {
       return gather(ctx, memory, {at::zeros({4}), at::zeros({4})});
     }},
    {"rows of one tensor", [](std::int64_t calls) { return at::ones({calls, 4}); },
     [](RankContext& ctx, const at::Tensor& memory, std::int64_t i) { return ctx.group().allreduce(memory[i]); }},
    {"columns of one tensor", [](std::int64_t calls) { return at::ones({4, calls}); },
     [](RankContext& ctx, const at::Tensor& memory, std::int64_t i) {
       std::vector<at::Tensor> outputs{memory.select(1, i), at::zeros({4})};
       return gather(ctx, at::ones({4}), outputs);
     }},
    {"one tensor again and again, each call ended", [](std::int64_t) { return at::ones({4}); },
     [](RankContext& ctx, const at::Tensor& memory, std::int64_t) {
       auto work = ctx.group().allreduce(memory);
       ctx.compute(std::chrono::seconds(1));
       return work;
     }},
    {"messages", [](std::int64_t calls) { return at::ones({calls, 4}); },
     [](RankContext& ctx, const at::Tensor& memory, std::int64_t i) {
       auto piece = memory[i];
       return ctx.rank() == 0 ? ctx.group().send(piece, 1) : ctx.group().recv(piece, 0);
     }},
};

Report run_program(const Program& program, std::int64_t calls, bool all_are_checked = true) {
  auto options = checked();
  options.explain_failures = false;
  options.check_buffers = options.check_sharing = all_are_checked;
  return run_checked(
      [&](RankContext& ctx) {
        const auto memory = program.memory(calls);
        std::vector<Work> works;
        for (std::int64_t i = 0; i < calls; ++i) works.push_back(program.call(ctx, memory, i));
        for (const auto& work : works) work->wait();
      },
      options);
}

double seconds_of(const Program& program, std::int64_t calls) {
  const double start = bench::cpu_seconds();
  EXPECT_EQ(run_program(program, calls).verdict, Verdict::ok) << program.name;
  return bench::cpu_seconds() - start;
}

// Takes the least of three rounds. While the limit is exceeded, it adds rounds, because other work on the machine can
// make a round slower but not faster.
TEST(ManyCalls, CostOfEachCall_DoesNotGrow) {
  for (const auto& program : kPrograms) {
    constexpr double kLimit = 3 * 8;  // it would be 64 if each call looked at all others
    double few = std::numeric_limits<double>::max(), many = few;
    for (int round = 0; round < 3 || (round < 12 && many >= kLimit * few); ++round) {
      few = std::min(few, seconds_of(program, kMany));
      many = std::min(many, seconds_of(program, 8 * kMany));
    }
    EXPECT_LT(many, kLimit * few) << program.name;
  }
}

TEST(ManyCalls, Write_NamesTheCallOfItsTensor) {
  const auto report = run_checked([](RankContext& ctx) {
    const auto memory = at::ones({kMany, 4});
    std::vector<Work> works;
    for (int i = 0; i < kMany; ++i) works.push_back(ctx.group().allreduce(memory[i]));
    if (ctx.rank() == 1) memory.select(0, 700).zero_();
    for (const auto& work : works) work->wait();
  });
  EXPECT_TRUE(says(report, "rank 1: aten::zero_ at ")) << report.headline;
  EXPECT_TRUE(says(report, "writes the tensor of allreduce #701 ")) << report.headline;
}

TEST(ManyCalls, WriteIntoManyTensors_NamesTheOldestCall) {
  const auto report = run_checked([](RankContext& ctx) {
    const auto memory = at::ones({kMany, 4});
    std::vector<Work> works;
    for (int i = 0; i < kMany; ++i) works.push_back(ctx.group().allreduce(memory[kMany - 1 - i]));
    if (ctx.rank() == 0) memory.add_(1);
    for (const auto& work : works) work->wait();
  });
  EXPECT_TRUE(says(report, "writes the tensor of allreduce #1 ")) << report.headline;
}

TEST(ManyCalls, EndedCalls_AreWatchedUntilTheirWait) {
  const auto report = run_checked([](RankContext& ctx) {
    const auto memory = at::ones({kMany, 4});
    std::vector<Work> works;
    for (int i = 0; i < kMany; ++i) works.push_back(ctx.group().allreduce(memory[i]));
    ctx.compute(std::chrono::seconds(1));
    if (ctx.rank() == 1) memory[3].zero_();
    for (const auto& work : works) work->wait();
  });
  EXPECT_TRUE(says(report, "writes the tensor of allreduce #4 ")) << report.headline;
}

TEST(ManyCalls, ResizedTensorIsFoundAmongThem) {
  const auto report = run_checked([](RankContext& ctx) {
    std::vector<at::Tensor> values;
    std::vector<Work> works;
    for (int i = 0; i < kMany; ++i) works.push_back(ctx.group().allreduce(values.emplace_back(at::ones({4}))));
    if (ctx.rank() == 1) values[20].resize_({1000});
    for (const auto& work : works) work->wait();
  });
  EXPECT_TRUE(says(report, "resizes the tensor of allreduce #21 ")) << report.headline;
}

}  // namespace
}  // namespace checked_programs
