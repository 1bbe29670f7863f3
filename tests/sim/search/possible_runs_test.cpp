// SPDX-License-Identifier: BSD-3-Clause
// Contract: a search only produces runs that are possible on a real machine. A monitor watches random programs:
//   - no rank that can run waits longer than the patience;
//   - no transfer ends before all its ranks have come, and its latency has passed;
//   - the calls of a rank come in the order of its program;
//   - no wait reaches its limit because time passed by choice: each limit here is as long as all that takes time.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <rehearse/sim/schedule.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/sim/oracles.h>

namespace rehearse_test {
namespace {

using namespace std::chrono_literals;
using rehearse::ChoiceKind;
using rehearse::RankContext;
using rehearse::VirtualDuration;
using rehearse::VirtualTime;
using rehearse::World;
using rehearse::WorldOptions;
using rehearse::sim::Strategy;

enum class Step { set_and_get, all_reduce, send_right, sleep, check, look_at_work, count_up, kinds };

// The same steps on all ranks; a rank sleeps for its own time before some of them.
struct Program {
  int ranks = 2;
  std::vector<Step> steps;
  std::vector<std::vector<VirtualDuration>> pauses;  // of each rank before each step
  VirtualDuration limit{0};                          // all pauses and transfers together
};

constexpr VirtualDuration kLatency = 5us;

Program draw(std::mt19937_64& numbers) {
  const auto below = [&](std::uint64_t end) { return numbers() % end; };
  Program program;
  program.ranks = 2 + static_cast<int>(below(3));
  program.limit = 1us;
  program.pauses.resize(static_cast<std::size_t>(program.ranks));
  for (auto count = 1 + below(6); count > 0; --count) {
    program.steps.push_back(static_cast<Step>(below(static_cast<std::uint64_t>(Step::kinds))));
    program.limit += 40 * program.ranks * kLatency;
    for (auto& of_rank : program.pauses) {
      of_rank.push_back(below(2) == 0 ? 0us : std::chrono::microseconds(1 + below(9000)));
      program.limit += 2 * of_rank.back();
    }
  }
  return program;
}

class Runs {
 public:
  Runs(const Program& program, RankContext& ctx, std::vector<int>& order)
      : program_(program),
        ctx_(ctx),
        order_(order),
        limit_(std::chrono::ceil<std::chrono::milliseconds>(program.limit)) {
    ctx.store()->setTimeout(limit_);
  }

  void run() {
    for (std::size_t step = 0; step < program_.steps.size(); ++step) {
      const auto pause = program_.pauses[static_cast<std::size_t>(ctx_.rank())][step];
      if (pause > 0us) ctx_.compute(pause);
      take(program_.steps[step], static_cast<int>(step));
      order_.push_back(static_cast<int>(step));
    }
  }

 private:
  void take(Step step, int number) {
    const auto key = std::to_string(number);
    auto tensor = at::full({4}, static_cast<double>(ctx_.rank()), at::kFloat);
    switch (step) {
      case Step::set_and_get:
        ctx_.store()->set(key + "/" + std::to_string(ctx_.rank()), std::vector<std::uint8_t>{1});
        ctx_.store()->get(key + "/" + std::to_string((ctx_.rank() + 1) % ctx_.size()));
        return;
      case Step::all_reduce: {
        ctx_.group().allreduce(tensor)->wait(limit_);
        const double sum = ctx_.size() * (ctx_.size() - 1) / 2.0;
        ctx_.expect(tensor.equal(at::full({4}, sum, at::kFloat)), "the sum");
        return;
      }
      case Step::send_right: {
        auto received = at::full({4}, -1.0, at::kFloat);
        const int left = (ctx_.rank() + ctx_.size() - 1) % ctx_.size();
        const auto sent = ctx_.group().send(tensor, (ctx_.rank() + 1) % ctx_.size(), number);
        ctx_.group().recv(received, left, number)->wait(limit_);
        sent->wait(limit_);
        ctx_.expect(received.equal(at::full({4}, static_cast<double>(left), at::kFloat)), "what the left one sent");
        return;
      }
      case Step::sleep:
        return ctx_.compute(std::chrono::microseconds(10));
      case Step::check:
        ctx_.store()->check({key});
        return;
      case Step::look_at_work: {
        const auto work = ctx_.group().allreduce(tensor);
        work->isCompleted();
        work->wait(limit_);
        return;
      }
      case Step::count_up:
        ctx_.store()->add("count", 1);
        return;
      case Step::kinds:
        return;
    }
  }

  const Program& program_;
  RankContext& ctx_;
  std::vector<int>& order_;
  const std::chrono::milliseconds limit_;
};

// Passes all questions on, and notes how long fibers that could run have waited.
class Watch final : public rehearse::Oracle {
 public:
  explicit Watch(rehearse::Oracle& oracle) : oracle_(oracle) {}

  bool begin(const rehearse::FiberFacts& facts) override { return oracle_.begin(facts); }

  std::uint32_t choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                       std::span<const std::uint32_t> weights) override {
    const auto answer = oracle_.choose(kind, candidates, weights);
    if (kind != ChoiceKind::next_fiber) return answer;
    auto& executor = *rehearse::exec::RankExecutor::current();
    const auto now = executor.clock().now();
    // Nobody asks if there is a single candidate. Then no other fiber could run.
    const auto steps = executor.decisions().log().steps();
    if (steps != steps_expected_) ready_since_.clear();
    for (const auto fiber : candidates) {
      if (fiber == rehearse::kTimePasses) continue;
      const auto since = ready_since_.try_emplace(fiber, now).first->second;
      longest = std::max(longest, now - since);
    }
    const bool time_passes = candidates[answer] == rehearse::kTimePasses;
    times_passed += time_passes ? 1 : 0;
    steps_expected_ = steps + (time_passes ? 0 : 1);
    ready_since_.erase(candidates[answer]);
    return answer;
  }

  VirtualDuration longest{0};
  int times_passed = 0;

 private:
  rehearse::Oracle& oracle_;
  std::map<std::uint32_t, VirtualTime> ready_since_;
  std::uint64_t steps_expected_ = 0;
};

void expect_possible(const World& world) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, VirtualTime> last_to_come;  // by group and collective
  const auto events = world.events().kept();
  const auto is_collective = [](const auto& event) { return event.peer < 0; };
  for (const auto& event : events) {
    if (!is_collective(event)) continue;
    auto& last = last_to_come.try_emplace({event.pg_id, event.seq_id}, event.time_created).first->second;
    last = std::max(last, event.time_created);
  }
  for (const auto& event : events) {
    ASSERT_TRUE(event.completed()) << world.events().title(event);
    EXPECT_GE(event.time_ended - event.time_started, kLatency) << world.events().title(event);
    EXPECT_GE(event.time_started, event.time_created);
    if (is_collective(event)) {
      EXPECT_GE(event.time_started, (last_to_come[{event.pg_id, event.seq_id}]));
    }
  }
  for (std::size_t i = 1; i < events.size(); ++i) EXPECT_GE(events[i].time_created, events[i - 1].time_created);
}

// Returns how often time passed by choice.
int run(const Program& program, std::uint64_t seed, const Strategy& strategy) {
  WorldOptions options{.ranks = program.ranks, .seed = seed};
  options.network.latency = kLatency;
  options.explain_failures = options.explain_remarks = false;
  rehearse::sim::take(strategy, options);
  const auto seeded = rehearse::sim::make_oracle(options);
  Watch watch(*seeded);
  World world(options);
  world.use_oracle(watch);
  std::vector<std::vector<int>> orders(static_cast<std::size_t>(program.ranks));
  const auto report =
      world.run([&](RankContext& ctx) { Runs(program, ctx, orders[static_cast<std::size_t>(ctx.rank())]).run(); });
  EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << report.headline;
  EXPECT_LE(watch.longest, strategy.patience);
  for (const auto& order : orders) {
    EXPECT_EQ(order.size(), program.steps.size());
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  }
  expect_possible(world);
  return watch.times_passed;
}

TEST(PossibleRuns, HoldInTenThousandRunsOfRandomPrograms) {
  constexpr int kRuns = 10'000;
  std::mt19937_64 numbers(20'240'607);
  const auto strategies = rehearse::sim::portfolio();
  int times_passed = 0;
  for (int i = 0; i < kRuns && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("program " + std::to_string(i));
    const auto program = draw(numbers);
    times_passed += run(program, numbers(), strategies[static_cast<std::size_t>(i) % strategies.size()]);
  }
  EXPECT_GT(times_passed, kRuns / 2);  // otherwise the monitor sees nothing
}

}  // namespace
// A rank that comes late by the patience meets a timeout that is shorter than the patience.
TEST(PossibleRuns, OfATimeoutBelowThePatience_MeetIt) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const auto report = World({.ranks = 3, .seed = seed, .patience = 10ms, .timeout = 2ms}).run([](RankContext& ctx) {
      for (int step = 0; step < 4; ++step) {
        ctx.group().allreduce(at::full({3}, 1.0))->wait();
        ctx.compute(8ms);
      }
    });
    ASSERT_EQ(report.verdict, rehearse::Verdict::ok) << seed << ": " << report.headline;
  }
}

}  // namespace rehearse_test
