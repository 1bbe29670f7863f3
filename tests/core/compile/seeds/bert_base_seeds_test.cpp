// SPDX-License-Identifier: BSD-3-Clause
// The seeds with BERT at their own size: 110 million parameters, 4 texts of 512 words. The pieces are as many as
// PyTorch makes of it at these caps (tests/data/bert_splits.json.gz).
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "bert_seed.h"

namespace rehearse::compiler {
namespace {

void expect_base_bert(double bucket_cap_mb, std::int64_t pieces) {
  const auto shape = test::BertShape::base();
  expect_bert_like_eager(shape, at::randint(shape.vocabulary, {4, 512}, at::kLong), bucket_cap_mb, pieces);
}

TEST(TestFakeDistributedSingleProcAtBaseSize, test_hf_bert_ddp_aot_eager) { expect_base_bert(25, 14); }
TEST(TestFakeDistributedSingleProcAtBaseSize, test_hf_bert_ddp_inductor) { expect_base_bert(5, 38); }

}  // namespace
}  // namespace rehearse::compiler
