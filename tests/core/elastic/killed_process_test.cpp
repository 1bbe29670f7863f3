// SPDX-License-Identifier: BSD-3-Clause
// Contract: elastic_ddp and elastic_fsdp also work on real processes, with c10d's gloo and TCPStore. If a process is
// killed, the job ends with the same result as without the kill. With elastic_ddp, the process is started again. With
// elastic_fsdp, the others go on without it, and the results may differ by rounding.
#include <chrono>
#include <utility>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bit_equal.h"
#include "elastic_ddp/training.h"
#include "elastic_fsdp/training.h"
#include "process_job.h"

namespace rehearse::test {
namespace {

// Two ranks, not three: gloo adds the values of three ranks in an order that depends on the buckets. DDP rebuilds the
// buckets after the first step of a round, so a further round could change the bits.
constexpr int kReplicas = 2;
at::Tensor train_replicas(BareContext& context) {
  return elastic_ddp::train(context, {.steps = 4, .rows = 6, .save_every = 1});
}

TEST(KilledProcess, StartedAgain_EndsAsWithoutTheKill) {
  const auto expected = Processes("replicas", kReplicas).run();
  for (const auto& parameters : expected) EXPECT_THAT(parameters, BitEqual(expected[0]));
  const std::vector<std::pair<int, int>> kills{{0, 1}, {1, 3}, {1, 0}, {0, 2}};
  for (const auto& [victim, step] : kills) {
    Processes processes("replicas", kReplicas);
    const auto parameters = processes.run({.rank = victim, .step = step});
    EXPECT_EQ(processes.kills(), 1);
    for (const auto& found : parameters) EXPECT_THAT(found, BitEqual(expected[0])) << victim << " in step " << step;
  }
}

// Returns one tensor with the parameters at the end, the first step of the last round, and the number of this rank's
// calls.
at::Tensor train_shards(BareContext& context) {
  context.wait_for_all();  // so that the first round has all ranks
  elastic::Options options;
  options.rendezvous.min_ranks = context.size() - 1;
  options.rendezvous.last_call = std::chrono::seconds(3);
  const auto parameters = elastic_fsdp::train(context, {.steps = 4, .rows = 12, .save_every = 1}, options);
  if (!parameters.defined()) return {};
  return at::cat({parameters, context.last_result().to(at::kDouble), at::tensor({context.calls()}, at::kDouble)});
}

struct Shards {
  explicit Shards(const at::Tensor& left)
      : parameters(left.slice(0, 0, -2)), took_up(left[-2].item<int>()), calls(left[-1].item<int>()) {}
  at::Tensor parameters;
  int took_up, calls;
};

// Kills one rank's process in each run, in different calls: in the middle of the forward or the backward, or at a
// checkpoint.
TEST(KilledProcess, OfAShardedJob_LeavesTheOthersToGoOn) {
  constexpr int kProcesses = 3;
  const Shards expected(Processes("shards", kProcesses).run().at(0));
  EXPECT_EQ(expected.took_up, 0);
  int later = 0;
  for (int i = 0; i < 5; ++i) {
    const Kill kill{.rank = i % kProcesses, .call = expected.calls * (i + 2) / 7};
    SCOPED_TRACE(fmt::format("rank {} in call {} of {}", kill.rank, kill.call, expected.calls));
    Processes processes("shards", kProcesses);
    const auto left = processes.run(kill, Afterwards::Gone);
    EXPECT_EQ(processes.kills(), 1);
    std::vector<Shards> others;
    for (int rank = 0; rank < kProcesses; ++rank) {
      ASSERT_EQ(left[rank].defined(), rank != kill.rank) << rank;
      if (rank != kill.rank) others.emplace_back(left[rank]);
    }
    EXPECT_THAT(others[0].parameters, BitEqual(others[1].parameters));
    EXPECT_EQ(others[0].took_up, others[1].took_up);
    EXPECT_TRUE(at::allclose(others[0].parameters, expected.parameters, 1e-13, 0));
    later += others[0].took_up > 0 ? 1 : 0;
  }
  EXPECT_GE(later, 3);  // most kills come after the first checkpoint
}

}  // namespace
}  // namespace rehearse::test

int main(int argc, char** argv) {
  using namespace rehearse::test;
  const auto exit_code = run_as_rank(argc, argv, {{"replicas", &train_replicas}, {"shards", &train_shards}});
  if (exit_code) return *exit_code;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
