// SPDX-License-Identifier: BSD-3-Clause
// Trainings with DistributedDataParallel's options, and the data of its logger.
#include <gmock/gmock.h>

#include "core/parallel/recorded/recorded_training.h"

namespace {

using namespace rehearse_test;
using namespace rehearse_test::recorded;

TEST(DdpRecorded, Plain) { expect_trained<recorded::Mlp>("plain"); }
TEST(DdpRecorded, SmallBuckets) { expect_trained<recorded::Mlp>("small_buckets", {.bucket_cap_mb = kSmall}); }
TEST(DdpRecorded, BucketViews) {
  expect_trained<recorded::Mlp>("bucket_views", {.bucket_cap_mb = kSmall, .gradient_as_bucket_view = true});
}
TEST(DdpRecorded, FindUnused) {
  expect_trained<Branches>("find_unused", {.bucket_cap_mb = kSmall, .find_unused_parameters = true}, kBranch);
}
TEST(DdpRecorded, SkipUnused) {
  expect_trained<Branches>(
      "skip_unused", {.bucket_cap_mb = kSmall, .find_unused_parameters = true, .skip_all_reduce_unused_params = true},
      [](auto& ddp, int rank, int step) { ddp(batch_of(rank, step), true).sum().backward(); });
}
TEST(DdpRecorded, StaticGraph) {
  expect_trained<Reused>("static_graph", {.bucket_cap_mb = kSmall, .static_graph = true}, kSum,
                         {.exact_at_first = false});
}
TEST(DdpRecorded, StaticGraphNoSync) {
  expect_trained<Reused>(
      "static_graph_no_sync", {.static_graph = true},
      [](auto& ddp, int rank, int step) { step == 0 ? kSum(ddp, rank, step) : kAccumulate(ddp, rank, step); },
      {.exact_at_first = false});
}
TEST(DdpRecorded, NoSync) { expect_trained<recorded::Mlp>("no_sync", {}, kAccumulate); }
TEST(DdpRecorded, NoSyncFindUnused) {
  expect_trained<recorded::Mlp>("no_sync_find_unused", {.find_unused_parameters = true}, kAccumulate);
}
TEST(DdpRecorded, Ignored) {
  expect_trained<recorded::Mlp>("ignored", {.parameters_to_ignore = {"second.weight", "third.bias"}});
}
TEST(DdpRecorded, Buffers) { expect_trained<Norm>("buffers", {}, kSquares, {.exact_at_first = false}); }
TEST(DdpRecorded, BuffersLocal) {
  expect_trained<Norm>("buffers_local", {.broadcast_buffers = false}, kSquares, {.exact_at_first = false});
}
TEST(DdpRecorded, MixedDtypes) { expect_trained<Mixed>("mixed_dtypes", {}, kSum, {.relative = 1e-6}); }
TEST(DdpRecorded, Shared) { expect_trained<Tied>("shared"); }

TEST(DdpRecorded, Sparse) {
  expect_trained<Sparse>("sparse", {}, [](auto& ddp, int rank, int step) {
    ddp((at::arange(5) * (rank + 2) + step).remainder(10)).sum().backward();
  });
}

// Bucket limits that rise and then fall: 13, 39 and 26 doubles.
const std::vector<double> kList = {kSmall, 3 * kSmall, 2 * kSmall};

TEST(DdpRecorded, BucketList) { expect_trained<recorded::Mlp>("bucket_list", {.bucket_cap_mb_list = kList}); }
TEST(DdpRecorded, BucketListFindUnused) {
  expect_trained<recorded::Mlp>("bucket_list_find_unused",
                                {.bucket_cap_mb = 25, .bucket_cap_mb_list = kList, .find_unused_parameters = true});
}

// The data of c10d's logger after four steps, including bucket sizes.
void expect_logged(const std::string& name, const Options& options) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    run_ranks({.ranks = ranks}, [&](RankContext& ctx) {
      Ddp<recorded::Mlp> ddp(std::make_shared<recorded::Mlp>(), ctx.group(), options);
      for (int step = 0; step < kSteps; ++step) kSum(ddp, ctx.rank(), step);
      if (ctx.rank() != 0 && ctx.rank() != ranks - 1) return;
      const auto data = ddp.logging_data();
      for (const auto& [key, expected] : recorded_logging_data(name, ranks, ctx.rank())) {
        const auto text = data.strs_map.find(key);
        const auto number = data.ints_map.find(key);
        const auto found = text != data.strs_map.end()     ? text->second
                           : number != data.ints_map.end() ? std::to_string(number->second)
                                                           : "(absent)";
        if (key == "module_name") {
          EXPECT_THAT(found, testing::HasSubstr("Mlp"));
        } else {
          EXPECT_EQ(found, expected) << key;
        }
      }
    });
  }
}

TEST(DdpRecorded, LoggingData) { expect_logged("small_buckets", {.bucket_cap_mb = kSmall}); }
TEST(DdpRecorded, LoggingDataOfBucketList) {
  expect_logged("bucket_list", {.bucket_cap_mb_list = kList});
  expect_logged("bucket_list_find_unused",
                {.bucket_cap_mb = 25, .bucket_cap_mb_list = kList, .find_unused_parameters = true});
}

}  // namespace
