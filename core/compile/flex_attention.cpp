// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/compile/flex_attention.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <rehearse_internal/operators/capture_mode.h>

namespace rehearse {
namespace {

constexpr std::int64_t kHeads = 1, kRows = 2, kWidth = 3;  // dimensions

void require_fit(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool enable_gqa) {
  for (const at::Tensor& each : {query, key, value}) {
    TORCH_CHECK_VALUE(each.defined() && each.dim() == 4,
                      "flex_attention: query, key and value must have 4 dimensions: batch, heads, rows and width");
  }
  const auto require = [&](bool fits, const char* what) {
    TORCH_CHECK_VALUE(fits, "flex_attention: ", what, ". query is ", query.sym_sizes(), ", key ", key.sym_sizes(),
                      ", value ", value.sym_sizes());
  };
  require(query.sym_size(0) == key.sym_size(0) && key.sym_size(0) == value.sym_size(0), "the batches differ");
  require(key.sym_size(kHeads) == value.sym_size(kHeads), "key and value must have equally many heads");
  require(key.sym_size(kRows) == value.sym_size(kRows), "key and value must have equally many rows");
  require(query.sym_size(kWidth) == key.sym_size(kWidth), "query and key must be equally wide");
  if (enable_gqa) {
    require(query.sym_size(kHeads) % key.sym_size(kHeads) == 0,
            "the number of the query's heads must be a multiple of the key's");
  } else {
    require(query.sym_size(kHeads) == key.sym_size(kHeads),
            "query and key must have equally many heads; with enable_gqa the query may have more");
  }
}

at::Tensor numbers(const c10::SymInt& count, at::IntArrayRef form, at::Device device) {
  return at::arange(c10::Scalar(count), at::TensorOptions(at::kLong).device(device)).view(form);
}

ScoreIndices indices_of(const at::Tensor& query, const at::Tensor& key) {
  const auto device = query.device();
  return {numbers(query.sym_size(0), {-1, 1, 1, 1}, device), numbers(query.sym_size(kHeads), {1, -1, 1, 1}, device),
          numbers(query.sym_size(kRows), {1, 1, -1, 1}, device), numbers(key.sym_size(kRows), {1, 1, 1, -1}, device)};
}

at::Tensor for_each_head(const at::Tensor& tensor, const at::Tensor& query) {
  return tensor.repeat_interleave_symint(query.sym_size(kHeads) / tensor.sym_size(kHeads), kHeads);
}

at::Tensor attend(const at::Tensor& query, at::Tensor key, at::Tensor value, const FlexAttentionOptions& options) {
  if (options.enable_gqa) {
    key = for_each_head(key, query);
    value = for_each_head(value, query);
  }
  const auto dtype = query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor products = at::matmul(query, key.transpose(-2, -1)).to(dtype);
  at::Tensor scores = products * options.scale.value_or(1 / std::sqrt(static_cast<double>(query.size(kWidth))));
  const ScoreIndices indices = indices_of(query, key);
  if (options.score_mod) {
    const auto sizes = scores.sym_sizes().vec();
    scores = options.score_mod(scores, indices);
    TORCH_CHECK_VALUE(scores.defined() && scores.sym_sizes() == c10::SymIntArrayRef(sizes),
                      "flex_attention: score_mod must return as many scores as it gets");
  }
  if (!options.mask_mod) return at::matmul(scores.softmax(-1).to(query.scalar_type()), value);
  const at::Tensor counts = options.mask_mod(indices);
  TORCH_CHECK_VALUE(counts.defined() && counts.scalar_type() == at::kBool,
                    "flex_attention: mask_mod must return a tensor of bools");
  const at::Tensor none = counts.expand_symint(scores.sym_sizes()).logical_not();
  scores = scores.masked_fill(none, -std::numeric_limits<double>::infinity());
  // A row without any score would be NaN, and so would its gradient.
  const at::Tensor empty = none.all(-1, true);
  const at::Tensor weights = scores.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0);
  return at::matmul(weights.to(query.scalar_type()), value);
}

}  // namespace

at::Tensor flex_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const FlexAttentionOptions& options) {
  require_fit(query, key, value, options.enable_gqa);
  operators::BodyRecorder* const bodies = operators::CaptureMode::current_bodies();
  if (bodies == nullptr) return attend(query, key, value, options);
  return bodies
      ->record("wrap", {query, key, value},
               [&](const std::vector<at::Tensor>& inputs) {
                 return std::vector<at::Tensor>{attend(inputs[0], inputs[1], inputs[2], options)};
               })
      .front();
}

}  // namespace rehearse
