// SPDX-License-Identifier: BSD-3-Clause
// The pieces are as many as PyTorch makes of it at these caps (tests/data/bert_splits.json.gz).
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "bert_seed.h"

namespace rehearse::compiler {
namespace {

void expect_tiny_bert(double bucket_cap_mb, std::int64_t pieces) {
  const auto shape = test::BertShape::tiny();
  expect_bert_like_eager(shape, at::randint(shape.vocabulary, {4, 16}, at::kLong), bucket_cap_mb, pieces);
}

TEST(TestFakeDistributedSingleProc, test_hf_bert_ddp_aot_eager) {
  expect_tiny_bert(25, 1);
  expect_tiny_bert(0.1, 5);
}

TEST(TestFakeDistributedSingleProc, test_hf_bert_ddp_inductor) { expect_tiny_bert(1, 1); }

}  // namespace
}  // namespace rehearse::compiler
