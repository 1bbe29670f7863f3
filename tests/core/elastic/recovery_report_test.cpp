// SPDX-License-Identifier: BSD-3-Clause
// Contract: if a run fails after ranks resumed from a checkpoint, the report names this checkpoint. It also names the
// step after which the state first differed from the state of a run without faults.
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "elastic_world.h"

namespace rehearse::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// The state that a job forgets when it resumes.
enum class Forgets { Nothing, WhereTheDataStands, Parameters };

struct Training {
  Forgets forgets = Forgets::Nothing;
  bool fails_without_faults = false;
  std::int64_t steps = 6;
};

void train(RankContext& ctx, const Training& training, const at::Tensor& expected) {
  elastic::run(ctx, [&](elastic::Round& round) {
    ctx.generator().set_current_seed(1);
    elastic_ddp::Net net;
    torch::optim::SGD optimizer(net->parameters(), elastic_ddp::with_momentum());
    elastic::Checkpoint checkpoint(round, *net, optimizer);
    auto step = checkpoint.load();
    if (training.forgets == Forgets::Parameters && step > 0) {
      const at::NoGradGuard no_grad;
      for (auto& parameter : net->parameters()) parameter.zero_();
    }
    std::int64_t batch = training.forgets == Forgets::WhereTheDataStands ? 0 : step;
    DistributedDataParallel ddp(net, round.group());
    for (; step < training.steps; checkpoint.save(++step)) {
      elastic_ddp::train_step(ddp, optimizer, round.group(), batch++, 4);
    }
    const bool is_right = at::equal(elastic_ddp::parameters_of(net), expected);
    if (!is_right || training.fails_without_faults) throw std::runtime_error("the parameters are not those expected");
  });
}

at::Tensor parameters_without_faults(std::int64_t steps) {
  return run_elastic(elastic_world({}, 2), {.steps = steps, .rows = 4}).parameters.front();
}

Report run(const Training& training, const std::string& fault) {
  WorldOptions options = elastic_world({fault}, 2);
  options.explain_failures = true;
  World world(options);
  const at::Tensor expected = parameters_without_faults(training.steps);
  return world.run([&](RankContext& ctx) { train(ctx, training, expected); });
}

std::vector<std::string> about_recovery(const Report& report) {
  std::vector<std::string> lines;
  for (const auto& remark : report.remarks) {
    if (remark.find("resumed in") != std::string::npos || remark.find("without faults") != std::string::npos) {
      lines.push_back(remark);
    }
  }
  return lines;
}

// Crashes rank 1 in the third step's all-reduce.
const std::string kCrash = "crash rank=1 call=allreduce#4 peers=disconnect restart=5ms";

TEST(RecoveryReport, NamesTheStepBehindWhichTheStateDiffers) {
  const Report report = run({.forgets = Forgets::WhereTheDataStands}, kCrash);
  EXPECT_EQ(report.verdict, Verdict::rank_failed) << report.headline;
  EXPECT_THAT(
      about_recovery(report),
      ElementsAre(
          AllOf(StartsWith("ranks 0-1 resumed in round 1 at recovery_report_test.cpp:"),
                HasSubstr(" after 2 steps, from what rank 0 had saved in round 0 at recovery_report_test.cpp:")),
          AllOf(StartsWith(
              "compared with the run of the same seed without faults, the saved states differ first after 3 steps: "
              "\"hidden.weight\", \"hidden.bias\", \"output.weight\", 1 more of ranks 0-1, in round 1"))));
}

TEST(RecoveryReport, AJobThatIsRightTakesUpWhereItWas) {
  const Report report = run({}, kCrash);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_THAT(about_recovery(report), IsEmpty());
}

TEST(RecoveryReport, SaysThatTheRunFailsWithoutFaultsToo) {
  const Report report = run({.fails_without_faults = true}, kCrash);
  EXPECT_EQ(report.verdict, Verdict::rank_failed) << report.headline;
  EXPECT_THAT(about_recovery(report),
              ElementsAre(HasSubstr("after 2 steps, from what"),
                          AllOf(StartsWith("the run of the same seed without faults fails, too: RANK FAILED"),
                                HasSubstr("not those expected")),
                          "all saved states equal those of the run of the same seed without faults"));
}

TEST(RecoveryReport, NamesTheStateThatWasNotTakenUp) {
  const Report report = run({.forgets = Forgets::Parameters}, kCrash);
  EXPECT_THAT(about_recovery(report),
              ElementsAre(HasSubstr("resumed in round 1"), HasSubstr("differ first after 3 steps")));
}

// The crash came before the first checkpoint, so no rank resumed from one.
TEST(RecoveryReport, WithoutACheckpoint_SaysNothing) {
  const Report report =
      run({.fails_without_faults = true}, "crash rank=1 call=allreduce#1 peers=disconnect restart=5ms");
  EXPECT_EQ(report.verdict, Verdict::rank_failed) << report.headline;
  EXPECT_THAT(about_recovery(report), IsEmpty());
}

}  // namespace
}  // namespace rehearse::test
