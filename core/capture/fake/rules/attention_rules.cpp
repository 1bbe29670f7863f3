// SPDX-License-Identifier: BSD-3-Clause
// Rules for embeddings and the CPU attention kernel.
#include "capture/fake/call/results.h"
#include "capture/fake/rules/rule_tables.h"

namespace rehearse::capture {
namespace {

// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
Outputs embedding(const Call& call) {
  const at::Tensor& weight = call.tensor(0);
  TORCH_CHECK(weight.dim() == 2, "'weight' must be 2-D, but has ", weight.dim(), " dimensions");
  SymInts sizes = call.tensor(1).sym_sizes().vec();
  sizes.push_back(weight.sym_size(1));
  return {result(call, std::move(sizes), weight.scalar_type())};
}

// embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
Outputs embedding_backward(const Call& call) {
  const at::Tensor& grad = call.tensor(0);
  return {result(call, SymInts{call.sym_int(2), grad.sym_size(-1)}, grad.scalar_type())};
}

// A tensor [batch, heads, length, ...] with the memory order of [batch, length, heads, ...].
TensorSpec by_length(const Call& call, const SymInts& sizes, c10::ScalarType dtype) {
  SymInts kept = sizes;
  std::swap(kept[1], kept[2]);
  SymInts strides = contiguous_strides(kept);
  std::swap(strides[1], strides[2]);
  return result(call, Layout{sizes, strides}, dtype);
}

// _scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal, *, attn_mask, scale)
Outputs flash_attention(const Call& call) {
  const at::Tensor& query = call.tensor(0);
  TORCH_CHECK(query.dim() == 4 && call.tensor(1).dim() == 4 && call.tensor(2).dim() == 4,
              "scaled_dot_product_attention: query, key and value must have 4 dimensions");
  const SymInts sizes = query.sym_sizes().vec();
  const c10::ScalarType sum = query.scalar_type() == c10::kDouble ? c10::kDouble : c10::kFloat;
  return {result_like(call, query, query.scalar_type()), by_length(call, {sizes[0], sizes[1], sizes[2]}, sum)};
}

// ..._backward(grad_out, query, key, value, ...)
Outputs flash_attention_backward(const Call& call) {
  Outputs outputs;
  for (std::size_t i = 1; i <= 3; ++i) {
    outputs.push_back(by_length(call, call.tensor(i).sym_sizes().vec(), call.tensor(i).scalar_type()));
  }
  return outputs;
}

constexpr std::pair<const std::string_view, Rule> kAttentionRules[] = {
    {"aten::embedding", embedding},
    {"aten::embedding_dense_backward", embedding_backward},
    {"aten::_scaled_dot_product_flash_attention_for_cpu", flash_attention},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", flash_attention_backward},
};

}  // namespace

RuleTable attention_rules() { return kAttentionRules; }

}  // namespace rehearse::capture
