// SPDX-License-Identifier: BSD-3-Clause
// The seed tests with BERT at PyTorch's size: 110 million parameters, 4 texts of 512 words. With the same bucket sizes,
// PyTorch makes the same number of pieces (tests/data/bert_splits.json.gz).
#include "bert_seed.h"
#include "core/compile/seeds/seed_test.h"

namespace rehearse::compiler {
namespace {

BertSeed base_bert(double bucket_cap_mb) {
  return {.shape = test::BertShape::base(), .words = 512, .bucket_cap_mb = bucket_cap_mb};
}

TEST_F(TestFakeDistributedSingleProcAtBaseSize, test_hf_bert_ddp_aot_eager) {
  const auto [stats, compiles] = expect_bert_like_eager(base_bert(cap_mb()));
  expect_listed(stats, compiles);
}
TEST_F(TestFakeDistributedSingleProcAtBaseSize, test_hf_bert_ddp_inductor) {
  const auto [stats, compiles] = expect_bert_like_eager(base_bert(cap_mb()));
  expect_listed(stats, compiles);
}

// Each of two ranks has two texts, so the ranks together need as much memory for activations as one rank with four.
BertSeed base_bert_on_ranks(double bucket_cap_mb) {
  BertSeed seed = base_bert(bucket_cap_mb);
  seed.texts = 2;
  return seed;
}

TEST_F(TestMultiProcAtBaseSize, test_hf_bert_ddp_aot_eager) {
  on_ranks([this](RankContext& ctx) {
    const auto [stats, compiles] = expect_bert_like_eager_on_rank(ctx, base_bert_on_ranks(cap_mb()));
    expect_listed(stats, compiles, ctx.rank());
  });
}
// The second step reduces in the order that the first step recorded.
TEST_F(TestMultiProcAtBaseSize, test_hf_bert_ddp_aot_eager_static_graph) {
  on_ranks([this](RankContext& ctx) {
    BertSeed seed = base_bert_on_ranks(cap_mb());
    seed.steps = 2;
    seed.static_graph = true;
    const auto [stats, compiles] = expect_bert_like_eager_on_rank(ctx, seed);
    expect_listed(stats, compiles, ctx.rank());
  });
}

}  // namespace
}  // namespace rehearse::compiler
