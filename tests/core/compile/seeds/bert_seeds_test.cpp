// SPDX-License-Identifier: BSD-3-Clause
// The seed tests with a tiny BERT. With the same bucket sizes, PyTorch makes the same number of pieces
// (tests/data/bert_splits.json.gz).
#include "bert_seed.h"
#include "core/compile/seeds/seed_test.h"

namespace rehearse::compiler {
namespace {

BertSeed tiny_bert(double bucket_cap_mb) { return {.shape = test::BertShape::tiny(), .bucket_cap_mb = bucket_cap_mb}; }

// Three steps: in the first, all gradients form one bucket; in the second, the buckets are rebuilt.
BertSeed tiny_bert_on_ranks(double bucket_cap_mb, bool static_graph) {
  BertSeed seed = tiny_bert(bucket_cap_mb);
  seed.steps = 3;
  seed.static_graph = static_graph;
  return seed;
}

TEST_F(TestFakeDistributedSingleProc, test_hf_bert_ddp_aot_eager) {
  const auto [stats, compiles] = expect_bert_like_eager(tiny_bert(cap_mb()));
  expect_listed(stats, compiles);
}
TEST_F(TestFakeDistributedSingleProcUncut, test_hf_bert_ddp_aot_eager) {
  const auto [stats, compiles] = expect_bert_like_eager(tiny_bert(cap_mb()));
  expect_listed(stats, compiles);
}
TEST_F(TestFakeDistributedSingleProc, test_hf_bert_ddp_inductor) {
  const auto [stats, compiles] = expect_bert_like_eager(tiny_bert(cap_mb()));
  expect_listed(stats, compiles);
}

TEST_F(TestMultiProc, test_hf_bert_ddp_aot_eager) {
  on_ranks([this](RankContext& ctx) {
    const auto [stats, compiles] = expect_bert_like_eager_on_rank(ctx, tiny_bert_on_ranks(cap_mb(), false));
    expect_listed(stats, compiles, ctx.rank());
  });
}
TEST_F(TestMultiProc, test_hf_bert_ddp_aot_eager_static_graph) {
  on_ranks([this](RankContext& ctx) {
    const auto [stats, compiles] = expect_bert_like_eager_on_rank(ctx, tiny_bert_on_ranks(cap_mb(), true));
    expect_listed(stats, compiles, ctx.rank());
  });
}
TEST_F(TestMultiProc, test_hf_bert_ddp_inductor) {
  on_ranks([this](RankContext& ctx) {
    const auto [stats, compiles] = expect_bert_like_eager_on_rank(ctx, tiny_bert_on_ranks(cap_mb(), false));
    expect_listed(stats, compiles, ctx.rank());
  });
}
TEST_F(TestMultiProc, test_hf_bert_ddp_inductor_static_graph) {
  on_ranks([this](RankContext& ctx) {
    const auto [stats, compiles] = expect_bert_like_eager_on_rank(ctx, tiny_bert_on_ranks(cap_mb(), true));
    expect_listed(stats, compiles, ctx.rank());
  });
}

}  // namespace
}  // namespace rehearse::compiler
