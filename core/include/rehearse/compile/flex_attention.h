// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>

#include <ATen/core/Tensor.h>

namespace rehearse {

// The places of the scores that flex_attention() gives to a function: tensors of int64 that broadcast to
// [batch, heads, queries, keys].
struct ScorePlaces {
  at::Tensor batch;  // [batch, 1, 1, 1]
  at::Tensor head;   // [1, heads, 1, 1]
  at::Tensor query;  // [1, 1, queries, 1]
  at::Tensor key;    // [1, 1, 1, keys]
};

struct FlexAttentionOptions {
  // Returns other scores, as many. `scores` is [batch, heads, queries, keys], of float, or of double if the query is.
  std::function<at::Tensor(const at::Tensor& scores, const ScorePlaces& places)> score_mod = nullptr;
  // Returns which scores count: bools that broadcast to all scores. A query of which none counts gets zeros.
  std::function<at::Tensor(const ScorePlaces& places)> mask_mod = nullptr;
  std::optional<double> scale = std::nullopt;  // of query times key; not given: 1 / sqrt(query.size(-1))
  bool enable_gqa = false;                     // each head of key and value serves several heads of the query, in order
};

// Attention whose scores and mask code computes: torch.nn.attention.flex_attention.
//
//   const auto causal = [](const rehearse::ScorePlaces& at) { return at.query >= at.key; };
//   const auto alibi = [slopes](const at::Tensor& scores, const rehearse::ScorePlaces& at) {
//     return scores + slopes.index({at.head}) * (at.key - at.query);
//   };
//   rehearse::flex_attention(query, key, value, {.score_mod = alibi, .mask_mod = causal});
//
// `query` is [batch, heads, queries, width], `key` [batch, heads, keys, width], `value` [batch, heads, keys, width of
// the result]; the result is [batch, heads, queries, width of the result]. PyTorch's functions get one score and four
// numbers, and are mapped over all scores; these get all scores at once, so they must be pointwise in them. Other
// tensors that they use may require grad.
//
// It computes with LibTorch's operators, all scores at once: batch * heads * queries * keys numbers and what their
// backward keeps. In a captured function it is one node, `wrap`, whose body is a graph; other tensors that the two
// functions use are operands of the node.
//
// Fibers, threads: as operators. Blocking: never. Errors: c10::ValueError for sizes that do not fit, and for results of
// the two functions that are no scores and no mask; c10::Error of operators.
at::Tensor flex_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const FlexAttentionOptions& options = {});

}  // namespace rehearse
