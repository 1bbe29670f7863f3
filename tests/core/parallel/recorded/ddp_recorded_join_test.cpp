// SPDX-License-Identifier: BSD-3-Clause
// Uneven inputs: rank r has r % 3 inputs more than rank 0.
#include <gtest/gtest.h>

#include "core/parallel/recorded/recorded_training.h"

namespace {

using namespace rehearse_test;
using namespace rehearse_test::recorded;

template <class Net, class Step = decltype(kSum)>
void expect_joined(const std::string& name, const Options& options, bool divide_by_initial_world_size, int fewest = 2,
                   Step step_of = kSum) {
  expect_recorded(name, [=](RankContext& ctx, Notes& notes) {
    auto net = std::make_shared<Net>();
    fill(*net, 7 * ctx.rank());
    Ddp<Net> ddp(net, ctx.group(), options);
    ddp.join(
        [&] {
          for (int step = 0; step < fewest + ctx.rank() % 3; ++step) {
            ddp.zero_grad(/*set_to_none=*/!options.gradient_as_bucket_view);
            step_of(ddp, ctx.rank(), step);
            descend(ddp.parameters(), 0.0625);
          }
        },
        {.divide_by_initial_world_size = divide_by_initial_world_size});
    notes.note(ctx, -1, *net);
  });
}

TEST(DdpRecordedJoin, Plain) { expect_joined<recorded::Mlp>("join", {.bucket_cap_mb = kSmall}, true); }
TEST(DdpRecordedJoin, EffectiveSize) {
  expect_joined<recorded::Mlp>("join_effective_size", {.bucket_cap_mb = kSmall}, false);
}
TEST(DdpRecordedJoin, FindUnused) {
  expect_joined<recorded::Mlp>("join_find_unused", {.find_unused_parameters = true}, true);
}
TEST(DdpRecordedJoin, Buffers) { expect_joined<Norm>("join_buffers", {}, true); }
TEST(DdpRecordedJoin, BuffersEffectiveSize) {
  expect_joined<Norm>("join_buffers_effective_size", {}, false, /*fewest=*/1);
}
TEST(DdpRecordedJoin, BuffersUnused) {
  expect_joined<NormUnused>("join_buffers_unused", {.find_unused_parameters = true}, false);
}
TEST(DdpRecordedJoin, Unused) {
  expect_joined<Branches>("join_unused", {.bucket_cap_mb = kSmall, .find_unused_parameters = true}, true,
                          /*fewest=*/2, kBranch);
}
TEST(DdpRecordedJoin, Views) {
  expect_joined<recorded::Mlp>("join_views", {.bucket_cap_mb = kSmall, .gradient_as_bucket_view = true}, false);
}
// Ranks 0, 3 and 6 have no inputs at all.
TEST(DdpRecordedJoin, WithoutInputs) {
  expect_joined<recorded::Mlp>("join_without_inputs", {.bucket_cap_mb = kSmall}, true, /*fewest=*/0);
}
TEST(DdpRecordedJoin, WithoutInputsEffectiveSize) {
  expect_joined<recorded::Mlp>("join_without_inputs_effective_size", {}, false, /*fewest=*/0);
}

}  // namespace
