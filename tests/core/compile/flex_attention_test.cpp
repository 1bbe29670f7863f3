// SPDX-License-Identifier: BSD-3-Clause
// Contract: flex_attention() computes the same as LibTorch's attention, if LibTorch has that kind of attention, and
// otherwise the same as a loop over the scores. A captured call computes the same and is one node with a body.
#include <rehearse/compile/flex_attention.h>

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/explanation.h>

#include "bit_equal.h"
#include "core/compile/error_of.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

at::Tensor waves(at::IntArrayRef sizes, double step) {
  return at::sin(at::arange(c10::multiply_integers(sizes), at::kDouble) * step).view(sizes);
}

struct Attended {
  at::Tensor query = waves({2, 4, 5, 3}, 0.37).requires_grad_();
  at::Tensor key = waves({2, 4, 6, 3}, 0.53).requires_grad_();
  at::Tensor value = waves({2, 4, 6, 2}, 0.71).requires_grad_();
  at::Tensor slopes = waves({4}, 0.91).requires_grad_();

  at::Tensor by(const FlexAttentionOptions& options) const { return flex_attention(query, key, value, options); }
};

at::Tensor is_before(const ScoreIndices& at) { return at.query >= at.key; }

FlexAttentionOptions alibi(const at::Tensor& slopes) {
  return {.score_mod = [slopes](const at::Tensor& scores, const ScoreIndices& at) {
    return scores + slopes.index({at.head}) * (at.key - at.query);
  }};
}

void expect_close(const at::Tensor& found, const at::Tensor& expected) {
  EXPECT_TRUE(found.allclose(expected, 1e-12, 1e-13)) << (found - expected).abs().max();
}

TEST(FlexAttention, IsLibTorchsAttention) {
  const Attended at;
  const auto sdpa = [](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal,
                       std::optional<double> scale = {}, bool gqa = false) {
    return at::scaled_dot_product_attention(q, k, v, {}, 0, causal, scale, gqa);
  };
  expect_close(at.by({}), sdpa(at.query, at.key, at.value, false));
  expect_close(at.by({.mask_mod = is_before}), sdpa(at.query, at.key, at.value, true));
  expect_close(at.by({.scale = 0.3}), sdpa(at.query, at.key, at.value, false, 0.3));
  const at::Tensor keys = at.key.narrow(1, 0, 2), values = at.value.narrow(1, 0, 2);
  expect_close(flex_attention(at.query, keys, values, {.enable_gqa = true}),
               sdpa(at.query, keys, values, false, {}, true));
}

TEST(FlexAttention, ChangesScoresByTheirPlaces) {
  const Attended at;
  const at::Tensor found = at.by(alibi(at.slopes));
  const double scale = 1 / std::sqrt(3.0);
  for (const int batch : {0, 1}) {
    for (const int head : {0, 3}) {
      for (const int query : {0, 4}) {
        at::Tensor scores = at::mv(at.key[batch][head], at.query[batch][head][query]) * scale;
        scores = scores + at.slopes[head] * (at::arange(6) - query);
        expect_close(found[batch][head][query], at::mv(at.value[batch][head].t(), scores.softmax(0)));
      }
    }
  }
}

TEST(FlexAttention, QueryWithoutScores_GetsZerosAndNoGradient) {
  const Attended at;
  const at::Tensor found = at.by({.mask_mod = [](const ScoreIndices& at) { return at.query > at.key; }});
  EXPECT_EQ(found.select(2, 0).abs().max().item<double>(), 0);
  found.square().sum().backward();
  for (const at::Tensor& each : {at.query, at.key, at.value}) EXPECT_TRUE(each.grad().isfinite().all().item<bool>());
  EXPECT_EQ(at.query.grad().select(2, 0).abs().max().item<double>(), 0);
}

at::Tensor masked_alibi(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        const at::Tensor& slopes) {
  auto options = alibi(slopes);
  options.mask_mod = is_before;
  return flex_attention(query.sin(), key, value, options).cos();
}

TEST(FlexAttention, CapturedOne_IsANodeAndEqual) {
  for (const char* const backend : {"eager", "aot_eager"}) {
    auto compiled = compile(&masked_alibi, {.backend = backend, .fullgraph = true});
    for (int call = 0; call < 2; ++call) {
      const Attended at, same;
      const at::Tensor found = compiled(at.query, at.key, at.value, at.slopes);
      const at::Tensor expected = masked_alibi(same.query, same.key, same.value, same.slopes);
      EXPECT_THAT(found, BitEqual(expected)) << backend;
      found.square().sum().backward();
      expected.square().sum().backward();
      EXPECT_THAT(at.query.grad(), BitEqual(same.query.grad())) << backend;
      EXPECT_THAT(at.key.grad(), BitEqual(same.key.grad())) << backend;
      EXPECT_THAT(at.value.grad(), BitEqual(same.value.grad())) << backend;
      EXPECT_THAT(at.slopes.grad(), BitEqual(same.slopes.grad())) << backend;
    }
    EXPECT_EQ(compiled.stats().compiles, 1);
    EXPECT_THAT(compiled.explain().pieces().at(0).text, HasSubstr("torch.ops.higher_order.wrap"));
  }
}

TEST(FlexAttention, OfSizesThatVary) {
  auto compiled = compile(&masked_alibi, {.dynamic = true, .fullgraph = true});
  for (const int rows : {7, 9, 13}) {
    const auto make = [&](int width) { return waves({rows + 10, 4, rows, width}, 0.3); };
    const at::Tensor slopes = waves({4}, 0.9);
    EXPECT_THAT(compiled(make(3), make(3), make(5), slopes), BitEqual(masked_alibi(make(3), make(3), make(5), slopes)));
  }
  EXPECT_EQ(compiled.stats().compiles, 1);
}

TEST(FlexAttention, WhatDoesNotFit_IsRefused) {
  const Attended at;
  const auto refused = [](const std::function<void()>& call, const std::string& text) {
    EXPECT_THAT(call, ThrowsMessage<c10::ValueError>(HasSubstr(text)));
  };
  refused([&] { flex_attention(at.query[0], at.key, at.value); }, "must have 4 dimensions");
  refused([&] { flex_attention(at.query, at.key.narrow(1, 0, 2), at.value.narrow(1, 0, 2)); },
          "query and key must have equally many heads; with enable_gqa the query may have more. query is [2, 4, 5, 3]");
  refused([&] { flex_attention(at.query, at.key.narrow(2, 0, 2), at.value); },
          "key and value must have equally many rows");
  refused([&] { at.by({.score_mod = [](const at::Tensor& scores, const ScoreIndices&) { return scores.sum(-1); }}); },
          "score_mod must return as many scores as it gets");
  refused([&] { at.by({.mask_mod = [](const ScoreIndices& at) { return at.key - at.query; }}); },
          "mask_mod must return a tensor of bools");
}

}  // namespace
}  // namespace rehearse::compiler
