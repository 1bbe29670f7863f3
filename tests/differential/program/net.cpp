// SPDX-License-Identifier: BSD-3-Clause
#include "differential/program/net.h"

#include <stdexcept>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/pooling.h>
#include <torch/nn/modules/rnn.h>

#include "differential/program/interpret.h"

namespace rehearse_test::differential {
namespace {

using Layer = std::function<at::Tensor(const at::Tensor&)>;

at::Tensor single(const at::Tensor& x) { return x.to(at::kFloat); }
// Recurrent layers and attention want three dimensions.
at::Tensor batched(const at::Tensor& x) { return x.dim() == 2 ? x.unsqueeze(1) : x; }

// Calls `forward` with the module and x. Without `forward`, calls the module's own.
template <class Module, class Forward>
Layer registered(Net& net, const std::string& name, Module module, Forward forward) {
  net.register_module(name, module);
  return [module, forward](const at::Tensor& x) mutable { return forward(module, x); };
}

template <class Module>
Layer registered(Net& net, const std::string& name, Module module) {
  net.register_module(name, module);
  return [module](const at::Tensor& x) mutable { return module->forward(x); };
}

Layer make_layer(Net& net, const std::string& kind, const std::string& name) {
  using namespace torch::nn;
  if (kind == "linear") return registered(net, name, Linear(kWidth, kWidth));
  if (kind == "linear without bias") return registered(net, name, Linear(LinearOptions(kWidth, kWidth).bias(false)));
  if (kind == "layer_norm") return registered(net, name, LayerNorm(LayerNormOptions({kWidth})));
  if (kind == "dropout") return registered(net, name, Dropout(0.5));
  if (kind == "batch_norm") return registered(net, name, BatchNorm1d(kWidth));
  if (kind == "mlp") {
    return registered(net, name, Sequential(Linear(kWidth, 6), ReLU(), Dropout(0.25), Linear(6, kWidth)));
  }
  if (kind == "attention") {
    return registered(net, name, MultiheadAttention(kWidth, 2), [](auto& attention, const at::Tensor& x) {
      return std::get<0>(attention->forward(batched(x), batched(x), batched(x)));
    });
  }
  if (kind == "single max_pool1d") {
    return registered(net, name, MaxPool1d(2), [](auto& pool, const at::Tensor& x) { return pool(single(x)); });
  }
  if (kind == "single conv1d") {
    return registered(net, name, Conv1d(kWidth, kWidth, 1),
                      [](auto& convolution, const at::Tensor& x) { return convolution(single(x).transpose(-1, -2)); });
  }
  if (kind == "single lstm") {
    return registered(net, name, LSTM(kWidth, kWidth),
                      [](auto& lstm, const at::Tensor& x) { return std::get<0>(lstm(batched(single(x)))); });
  }
  if (kind == "single gru") {
    return registered(net, name, GRU(kWidth, kWidth),
                      [](auto& gru, const at::Tensor& x) { return std::get<0>(gru(batched(single(x)))); });
  }
  if (kind == "single linear") {
    return registered(net, name, Linear(kWidth, kWidth),
                      [](auto& linear, const at::Tensor& x) { return linear(single(x)); });
  }
  throw std::invalid_argument("no layer is called " + kind);
}

}  // namespace

const std::vector<std::string>& layer_kinds() {
  static const std::vector<std::string> kinds = {
      "linear",    "linear without bias", "layer_norm",    "dropout",     "batch_norm", "mlp",
      "attention", "single max_pool1d",   "single conv1d", "single lstm", "single gru", "single linear"};
  return kinds;
}

bool is_single_layer(const std::string& kind) { return kind.starts_with("single"); }

const std::vector<std::string>& free_names() {
  static const std::vector<std::string> names = {"vector", "matrix", "scalar", "buffer", "counter"};
  return names;
}

Net::Net(const Program& made_of) : program(made_of) {
  vector = register_parameter("vector", at::rand({kWidth}));
  for (std::size_t i = 0; i < program.layers.size(); ++i) {
    layers_.push_back(make_layer(*this, program.layers[i], "layer" + std::to_string(i)));
  }
  matrix = register_parameter("matrix", at::rand({kWidth, kWidth}) - 0.5);
  scalar = register_parameter("scalar", at::rand({}));
  buffer = register_buffer("buffer", at::rand({kWidth}));
  to(at::kDouble);
  for (std::size_t i = 0; i < program.layers.size(); ++i) {
    if (is_single_layer(program.layers[i])) named_children()["layer" + std::to_string(i)]->to(at::kFloat);
  }
  // The members must be the registered tensors, which to() has converted.
  vector = named_parameters(false)["vector"];
  matrix = named_parameters(false)["matrix"];
  scalar = named_parameters(false)["scalar"];
  buffer = named_buffers(false)["buffer"];
  counter = register_buffer("counter", at::zeros({}, at::kLong));  // registered after to(), which would convert it
}

Tensors Net::forward(const Tensors& arguments, std::int64_t count, std::int64_t& steps) {
  return interpret(program, arguments, count, steps, this).results;
}

at::Tensor Net::call(std::size_t layer, const at::Tensor& x) { return layers_.at(layer)(x); }

}  // namespace rehearse_test::differential
