// SPDX-License-Identifier: BSD-3-Clause
// One step of an LSTM and of a GRU: LibTorch has kernels that fuse it for GPUs, and asks every device but the CPU for
// them. The formulas, and what `workspace` holds, are those of aten/src/ATen/native/cuda/RNN.cu.
#include <optional>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <torch/library.h>

#include "python/device/cuda.h"

namespace rehearse::python {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

bool is_given(const OptionalTensor& tensor) { return tensor && tensor->defined(); }

Tensor plus(const Tensor& gates, const OptionalTensor& bias) { return is_given(bias) ? gates + *bias : gates; }

std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                                             const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  const auto gates = (plus(input_gates, input_bias) + plus(hidden_gates, hidden_bias)).chunk(4, 1);
  const auto in = gates[0].sigmoid(), forget = gates[1].sigmoid(), cell = gates[2].tanh(), out = gates[3].sigmoid();
  const auto cy = forget * cx + in * cell;
  return {out * cy.tanh(), cy, at::cat({in, forget, cell, out}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const OptionalTensor& grad_hy, const OptionalTensor& grad_cy,
                                                      const Tensor& cx, const Tensor& cy, const Tensor& workspace,
                                                      bool has_bias) {
  if (!is_given(grad_hy) && !is_given(grad_cy)) return {};
  const auto gates = workspace.chunk(4, 1);
  const auto &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  const auto of_hy = is_given(grad_hy) ? *grad_hy : at::zeros_like(cy);
  const auto tanh_cy = cy.tanh();
  auto of_cy = of_hy * out * (1 - tanh_cy * tanh_cy);
  if (is_given(grad_cy)) of_cy = of_cy + *grad_cy;
  const auto of_gates = at::cat({of_cy * cell * in * (1 - in), of_cy * cx * forget * (1 - forget),
                                 of_cy * in * (1 - cell * cell), of_hy * tanh_cy * out * (1 - out)},
                                1);
  return {of_gates, of_cy * forget, has_bias ? of_gates.sum(0) : Tensor()};
}

std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                    const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  const auto in = plus(input_gates, input_bias).chunk(3, 1), hidden = plus(hidden_gates, hidden_bias).chunk(3, 1);
  const auto reset = (in[0] + hidden[0]).sigmoid(), update = (in[1] + hidden[1]).sigmoid();
  const auto fresh = (in[2] + reset * hidden[2]).tanh();
  return {fresh + update * (hx - fresh), at::cat({reset, update, fresh, hx, hidden[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad_hy, const Tensor& workspace,
                                                                     bool has_bias) {
  const auto parts = workspace.chunk(5, 1);
  const auto &reset = parts[0], &update = parts[1], &fresh = parts[2], &hx = parts[3], &hidden = parts[4];
  const auto of_update = grad_hy * (hx - fresh) * (1 - update) * update;
  const auto of_fresh = grad_hy * (1 - update) * (1 - fresh * fresh);
  const auto of_reset = of_fresh * hidden * (1 - reset) * reset;
  const auto of_input = at::cat({of_reset, of_update, of_fresh}, 1);
  const auto of_hidden = at::cat({of_reset, of_update, of_fresh * reset}, 1);
  return {of_input, of_hidden, grad_hy * update, has_bias ? of_input.sum(0) : Tensor(),
          has_bias ? of_hidden.sum(0) : Tensor()};
}

}  // namespace

void register_cells(torch::Library& aten) {
  aten.impl("_thnn_fused_lstm_cell", lstm_cell);
  aten.impl("_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward);
  aten.impl("_thnn_fused_gru_cell", gru_cell);
  aten.impl("_thnn_fused_gru_cell_backward", gru_cell_backward);
}

}  // namespace rehearse::python
