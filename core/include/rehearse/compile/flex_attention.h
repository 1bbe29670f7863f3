// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>

#include <ATen/core/Tensor.h>

namespace rehearse {

// The indices of all scores, which flex_attention() passes to your functions: int64 tensors that broadcast to
// [batch, heads, queries, keys].
struct ScoreIndices {
  at::Tensor batch;  // [batch, 1, 1, 1]
  at::Tensor head;   // [1, heads, 1, 1]
  at::Tensor query;  // [1, 1, queries, 1]
  at::Tensor key;    // [1, 1, 1, keys]
};

struct FlexAttentionOptions {
  // Returns modified scores of the same sizes. `scores` is [batch, heads, queries, keys], of dtype double if the query
  // has it, else float.
  std::function<at::Tensor(const at::Tensor& scores, const ScoreIndices& indices)> score_mod = nullptr;
  // Returns bools that broadcast to the sizes of the scores: true for each score that counts. If no score of a query
  // counts, its result is zeros.
  std::function<at::Tensor(const ScoreIndices& indices)> mask_mod = nullptr;
  std::optional<double> scale = std::nullopt;  // multiplies query times key; by default 1 / sqrt(query.size(-1))
  bool enable_gqa = false;                     // each head of key and value serves several successive query heads
};

// Attention for which your code computes scores and mask. Source: torch.nn.attention.flex_attention.
//
//   const auto causal = [](const rehearse::ScoreIndices& at) { return at.query >= at.key; };
//   const auto alibi = [slopes](const at::Tensor& scores, const rehearse::ScoreIndices& at) {
//     return scores + slopes.index({at.head}) * (at.key - at.query);
//   };
//   rehearse::flex_attention(query, key, value, {.score_mod = alibi, .mask_mod = causal});
//
// Sizes: `query` is [batch, heads, queries, width], `key` is [batch, heads, keys, width], and `value` is [batch, heads,
// keys, value width]. The result is [batch, heads, queries, value width].
//
// PyTorch calls score_mod and mask_mod for one score, with four numbers as its indices, and maps the calls over all
// scores. Here each function gets all scores at once, so it must be pointwise. The functions may use other tensors,
// which may require grad.
//
// Memory: all batch * heads * queries * keys scores exist at once, and so does what their backward saves. In a captured
// function, if grad mode is on, the call is one node, `wrap`. The body of the node is a graph. Other tensors that the
// two functions use are operands of the node.
//
// Fibers, threads: as operators. Blocking: never. Errors: c10::ValueError for sizes that do not fit, and if a function
// returns something else than scores or a mask; c10::Error of operators.
at::Tensor flex_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const FlexAttentionOptions& options = {});

}  // namespace rehearse
