// SPDX-License-Identifier: BSD-3-Clause
#include <torch/nn/modules.h>
#include <torch/nn/options.h>

#include "core/compile/like_eager/nn_programs.h"

namespace rehearse_test {

namespace nn = torch::nn;

namespace {

Tensors flat_loss(nn::AdaptiveLogSoftmaxWithLoss& net, const Tensors& given) {
  const nn::ASMoutput made = net->forward(given[0], given[1]);
  return {made.output, at::scalar_tensor(made.loss)};
}

at::Tensor signs(at::IntArrayRef sizes) { return at::randint(2, sizes, at::kFloat) * 2 - 1; }
at::Tensor probabilities(at::IntArrayRef sizes) { return at::rand(sizes).requires_grad_(); }

// Indices of 2 x 2 windows in an input with 4 elements in each of `dims` dimensions.
at::Tensor windows(std::int64_t dims) {
  const at::Tensor along = at::arange(2) * 2;
  at::Tensor made = along;
  for (std::int64_t dim = 1; dim < dims; ++dim) made = made.unsqueeze(-1) * 4 + along;
  return made.unsqueeze(0).unsqueeze(0);
}

const NnProgram kModules[] = {
    {"AdaptiveAvgPool1d", [] { return call_of(nn::AdaptiveAvgPool1d(2), leaf({2, 3, 6})); }},
    {"AdaptiveAvgPool2d", [] { return call_of(nn::AdaptiveAvgPool2d(2), leaf({2, 3, 6, 5})); }},
    {"AdaptiveAvgPool3d", [] { return call_of(nn::AdaptiveAvgPool3d(2), leaf({2, 3, 6, 5, 4})); }},
    {"AdaptiveLogSoftmaxWithLoss",
     [] {
       nn::AdaptiveLogSoftmaxWithLoss net(nn::AdaptiveLogSoftmaxWithLossOptions(4, 6, {2, 4}).div_value(2));
       const auto run = [net](const Tensors& given) mutable { return flat_loss(net, given); };
       return NnCall{net.ptr(), run, {leaf({5, 4}), indices({5}, 6)}};
     },
     "known only when the program runs with its data"},
    {"AdaptiveMaxPool1d", [] { return call_of(nn::AdaptiveMaxPool1d(2), leaf({2, 3, 6})); }},
    {"AdaptiveMaxPool2d", [] { return call_of(nn::AdaptiveMaxPool2d(2), leaf({2, 3, 6, 5})); }},
    {"AdaptiveMaxPool3d", [] { return call_of(nn::AdaptiveMaxPool3d(2), leaf({2, 3, 6, 5, 4})); }},
    {"AlphaDropout", [] { return call_of(nn::AlphaDropout(0.5), leaf({4, 3})); }},
    {"AvgPool1d", [] { return call_of(nn::AvgPool1d(2), leaf({2, 3, 6})); }},
    {"AvgPool2d", [] { return call_of(nn::AvgPool2d(2), leaf({2, 3, 6, 5})); }},
    {"AvgPool3d", [] { return call_of(nn::AvgPool3d(2), leaf({2, 3, 6, 5, 4})); }},
    {"BCELoss", [] { return call_of(nn::BCELoss(), probabilities({4, 3}), fixed({4, 3})); }},
    {"BCEWithLogitsLoss", [] { return call_of(nn::BCEWithLogitsLoss(), leaf({4, 3}), fixed({4, 3})); }},
    {"BatchNorm1d", [] { return call_of(nn::BatchNorm1d(3), leaf({4, 3})); }},
    {"BatchNorm2d", [] { return call_of(nn::BatchNorm2d(3), leaf({2, 3, 4, 5})); }},
    {"BatchNorm3d", [] { return call_of(nn::BatchNorm3d(3), leaf({2, 3, 4, 3, 2})); }},
    {"Bilinear", [] { return call_of(nn::Bilinear(3, 4, 5), leaf({2, 3}), leaf({2, 4})); }},
    {"CELU", [] { return call_of(nn::CELU(), leaf({4, 3})); }},
    {"CTCLoss",
     [] {
       const at::Tensor lengths = at::full({2}, 3, at::kLong);
       const at::Tensor targets = indices({2, 3}, 4) + 1;
       return call_of(nn::CTCLoss(), at::randn({7, 2, 5}).log_softmax(2).requires_grad_(), targets, lengths + 4,
                      lengths);
     },
     "memory of a fake tensor"},
    {"ConstantPad1d", [] { return call_of(nn::ConstantPad1d(1, 2.0), leaf({2, 3, 4})); }},
    {"ConstantPad2d", [] { return call_of(nn::ConstantPad2d(1, 2.0), leaf({2, 3, 4, 5})); }},
    {"ConstantPad3d", [] { return call_of(nn::ConstantPad3d(1, 2.0), leaf({2, 3, 4, 3, 2})); }},
    {"Conv1d", [] { return call_of(nn::Conv1d(3, 4, 2), leaf({2, 3, 6})); }},
    {"Conv2d", [] { return call_of(nn::Conv2d(3, 4, 2), leaf({2, 3, 6, 5})); }},
    {"Conv3d", [] { return call_of(nn::Conv3d(3, 4, 2), leaf({2, 3, 4, 5, 6})); }},
    {"ConvTranspose1d", [] { return call_of(nn::ConvTranspose1d(3, 4, 2), leaf({2, 3, 6})); }},
    {"ConvTranspose2d", [] { return call_of(nn::ConvTranspose2d(3, 4, 2), leaf({2, 3, 6, 5})); }},
    {"ConvTranspose3d", [] { return call_of(nn::ConvTranspose3d(3, 4, 2), leaf({2, 3, 4, 5, 6})); }},
    {"CosineEmbeddingLoss", [] { return call_of(nn::CosineEmbeddingLoss(), leaf({4, 3}), leaf({4, 3}), signs({4})); }},
    {"CosineSimilarity", [] { return call_of(nn::CosineSimilarity(), leaf({4, 3}), leaf({4, 3})); }},
    {"CrossEntropyLoss", [] { return call_of(nn::CrossEntropyLoss(), leaf({4, 3}), indices({4}, 3)); }},
    {"CrossMapLRN2d", [] { return call_of(nn::CrossMapLRN2d(3), leaf({2, 4, 5, 5})); },
     "a custom autograd function, backward() or grad() is called"},
    {"Dropout", [] { return call_of(nn::Dropout(0.5), leaf({4, 3})); }},
    {"Dropout2d", [] { return call_of(nn::Dropout2d(0.5), leaf({2, 3, 4, 5})); }},
    {"Dropout3d", [] { return call_of(nn::Dropout3d(0.5), leaf({2, 3, 4, 3, 2})); }},
    {"ELU", [] { return call_of(nn::ELU(), leaf({4, 3})); }},
    {"Embedding", [] { return call_of(nn::Embedding(6, 3), indices({2, 4}, 6)); }},
    {"EmbeddingBag", [] { return call_of(nn::EmbeddingBag(6, 3), indices({2, 4}, 6)); }},
    {"FeatureAlphaDropout", [] { return call_of(nn::FeatureAlphaDropout(0.5), leaf({2, 3, 4, 5})); }},
    {"Flatten", [] { return call_of(nn::Flatten(), leaf({2, 3, 4})); }},
    {"Fold", [] { return call_of(nn::Fold(nn::FoldOptions({3, 3}, {2, 2})), leaf({2, 12, 4})); }},
    {"FractionalMaxPool2d",
     [] {
       return call_of(nn::FractionalMaxPool2d(nn::FractionalMaxPool2dOptions(2).output_size(2)), leaf({2, 3, 6, 5}));
     }},
    {"FractionalMaxPool3d",
     [] {
       return call_of(nn::FractionalMaxPool3d(nn::FractionalMaxPool3dOptions(2).output_size(2)), leaf({2, 3, 6, 5, 4}));
     }},
    {"Functional",
     [] {
       nn::Functional net([](const at::Tensor& x) { return at::relu(x); });
       const auto run = [net](const Tensors& given) mutable { return Tensors{net(given[0])}; };
       return NnCall{net.ptr(), run, {leaf({4, 3})}};
     }},
    {"GELU", [] { return call_of(nn::GELU(), leaf({4, 3})); }},
    {"GLU", [] { return call_of(nn::GLU(), leaf({4, 6})); }},
    {"GRU", [] { return call_of(nn::GRU(3, 5), leaf({4, 2, 3})); }},
    {"GRUCell", [] { return call_of(nn::GRUCell(3, 5), leaf({2, 3})); }},
    {"GroupNorm", [] { return call_of(nn::GroupNorm(2, 4), leaf({2, 4, 5})); }},
    {"Hardshrink", [] { return call_of(nn::Hardshrink(), leaf({4, 3})); }},
    {"Hardtanh", [] { return call_of(nn::Hardtanh(), leaf({4, 3})); }},
    {"HingeEmbeddingLoss", [] { return call_of(nn::HingeEmbeddingLoss(), leaf({4, 3}), signs({4, 3})); }},
    {"HuberLoss", [] { return call_of(nn::HuberLoss(), leaf({4, 3}), fixed({4, 3})); }},
    {"Identity", [] { return call_of(nn::Identity(), leaf({4, 3})); }},
    {"InstanceNorm1d", [] { return call_of(nn::InstanceNorm1d(3), leaf({2, 3, 4})); }},
    {"InstanceNorm2d",
     [] {
       return call_of(nn::InstanceNorm2d(nn::InstanceNorm2dOptions(3).affine(true).track_running_stats(true)),
                      leaf({2, 3, 4, 5}));
     }},
    {"InstanceNorm3d", [] { return call_of(nn::InstanceNorm3d(3), leaf({2, 3, 4, 3, 2})); }},
    {"KLDivLoss", [] { return call_of(nn::KLDivLoss(), leaf({4, 3}), fixed({4, 3})); }},
    {"L1Loss", [] { return call_of(nn::L1Loss(), leaf({4, 3}), fixed({4, 3})); }},
    {"LPPool1d", [] { return call_of(nn::LPPool1d(2, 2), probabilities({2, 3, 6})); }},
    {"LPPool2d", [] { return call_of(nn::LPPool2d(2, 2), probabilities({2, 3, 6, 5})); }},
    {"LPPool3d", [] { return call_of(nn::LPPool3d(2, 2), probabilities({2, 3, 6, 5, 4})); }},
    {"LSTM", [] { return call_of(nn::LSTM(nn::LSTMOptions(3, 5).num_layers(2)), leaf({4, 2, 3})); }},
    {"LSTMCell", [] { return call_of(nn::LSTMCell(3, 5), leaf({2, 3})); }},
    {"LayerNorm", [] { return call_of(nn::LayerNorm(nn::LayerNormOptions({3})), leaf({4, 3})); }},
    {"LeakyReLU", [] { return call_of(nn::LeakyReLU(), leaf({4, 3})); }},
    {"Linear", [] { return call_of(nn::Linear(3, 5), leaf({4, 3})); }},
    {"LocalResponseNorm", [] { return call_of(nn::LocalResponseNorm(2), leaf({2, 3, 4, 5})); }},
    {"LogSigmoid", [] { return call_of(nn::LogSigmoid(), leaf({4, 3})); }},
    {"LogSoftmax", [] { return call_of(nn::LogSoftmax(1), leaf({4, 3})); }},
    {"MSELoss", [] { return call_of(nn::MSELoss(), leaf({4, 3}), fixed({4, 3})); }},
    {"MarginRankingLoss", [] { return call_of(nn::MarginRankingLoss(), leaf({4}), leaf({4}), signs({4})); }},
    {"MaxPool1d", [] { return call_of(nn::MaxPool1d(2), leaf({2, 3, 6})); }},
    {"MaxPool2d", [] { return call_of(nn::MaxPool2d(2), leaf({2, 3, 6, 5})); }},
    {"MaxPool3d", [] { return call_of(nn::MaxPool3d(2), leaf({2, 3, 6, 5, 4})); }},
    {"MaxUnpool1d", [] { return call_of(nn::MaxUnpool1d(2), leaf({1, 1, 2}), windows(1)); }},
    {"MaxUnpool2d", [] { return call_of(nn::MaxUnpool2d(2), leaf({1, 1, 2, 2}), windows(2)); }},
    {"MaxUnpool3d", [] { return call_of(nn::MaxUnpool3d(2), leaf({1, 1, 2, 2, 2}), windows(3)); }},
    {"Mish", [] { return call_of(nn::Mish(), leaf({4, 3})); }},
    {"MultiLabelMarginLoss", [] { return call_of(nn::MultiLabelMarginLoss(), leaf({4, 3}), indices({4, 3}, 3)); }},
    {"MultiLabelSoftMarginLoss", [] { return call_of(nn::MultiLabelSoftMarginLoss(), leaf({4, 3}), fixed({4, 3})); }},
    {"MultiMarginLoss", [] { return call_of(nn::MultiMarginLoss(), leaf({4, 3}), indices({4}, 3)); }},
    {"MultiheadAttention",
     [] { return call_of(nn::MultiheadAttention(4, 2), leaf({5, 2, 4}), leaf({6, 2, 4}), leaf({6, 2, 4})); }},
    {"NLLLoss", [] { return call_of(nn::NLLLoss(), leaf({4, 3}), indices({4}, 3)); }},
    {"PReLU", [] { return call_of(nn::PReLU(), leaf({4, 3})); }},
    {"PairwiseDistance", [] { return call_of(nn::PairwiseDistance(), leaf({4, 3}), leaf({4, 3})); }},
    {"PixelShuffle", [] { return call_of(nn::PixelShuffle(2), leaf({2, 4, 3, 3})); }},
    {"PixelUnshuffle", [] { return call_of(nn::PixelUnshuffle(2), leaf({2, 1, 4, 4})); }},
    {"PoissonNLLLoss", [] { return call_of(nn::PoissonNLLLoss(), leaf({4, 3}), fixed({4, 3})); }},
    {"RNN", [] { return call_of(nn::RNN(3, 5), leaf({4, 2, 3})); }},
    {"RNNCell", [] { return call_of(nn::RNNCell(3, 5), leaf({2, 3})); }},
    {"RReLU", [] { return call_of(nn::RReLU(), leaf({4, 3})); }},
    {"ReLU", [] { return call_of(nn::ReLU(), leaf({4, 3})); }},
    {"ReLU6", [] { return call_of(nn::ReLU6(), leaf({4, 3})); }},
    {"ReflectionPad1d", [] { return call_of(nn::ReflectionPad1d(1), leaf({2, 3, 4})); }},
    {"ReflectionPad2d", [] { return call_of(nn::ReflectionPad2d(1), leaf({2, 3, 4, 5})); }},
    {"ReflectionPad3d", [] { return call_of(nn::ReflectionPad3d(1), leaf({2, 3, 4, 3, 2})); }},
    {"ReplicationPad1d", [] { return call_of(nn::ReplicationPad1d(1), leaf({2, 3, 4})); }},
    {"ReplicationPad2d", [] { return call_of(nn::ReplicationPad2d(1), leaf({2, 3, 4, 5})); }},
    {"ReplicationPad3d", [] { return call_of(nn::ReplicationPad3d(1), leaf({2, 3, 4, 3, 2})); }},
    {"SELU", [] { return call_of(nn::SELU(), leaf({4, 3})); }},
    {"SiLU", [] { return call_of(nn::SiLU(), leaf({4, 3})); }},
    {"Sigmoid", [] { return call_of(nn::Sigmoid(), leaf({4, 3})); }},
    {"SmoothL1Loss", [] { return call_of(nn::SmoothL1Loss(), leaf({4, 3}), fixed({4, 3})); }},
    {"SoftMarginLoss", [] { return call_of(nn::SoftMarginLoss(), leaf({4, 3}), signs({4, 3})); }},
    {"Softmax", [] { return call_of(nn::Softmax(1), leaf({4, 3})); }},
    {"Softmax2d", [] { return call_of(nn::Softmax2d(), leaf({2, 3, 4, 5})); }},
    {"Softmin", [] { return call_of(nn::Softmin(1), leaf({4, 3})); }},
    {"Softplus", [] { return call_of(nn::Softplus(), leaf({4, 3})); }},
    {"Softshrink", [] { return call_of(nn::Softshrink(), leaf({4, 3})); }},
    {"Softsign", [] { return call_of(nn::Softsign(), leaf({4, 3})); }},
    {"Tanh", [] { return call_of(nn::Tanh(), leaf({4, 3})); }},
    {"Tanhshrink", [] { return call_of(nn::Tanhshrink(), leaf({4, 3})); }},
    {"Threshold", [] { return call_of(nn::Threshold(0.1, 2), leaf({4, 3})); }},
    {"Transformer",
     [] {
       const auto options = nn::TransformerOptions(4, 2, 1, 1).dim_feedforward(6);
       return call_of(nn::Transformer(options), leaf({5, 2, 4}), leaf({6, 2, 4}));
     }},
    {"TransformerDecoder",
     [] {
       const nn::TransformerDecoderLayer layer(nn::TransformerDecoderLayerOptions(4, 2).dim_feedforward(6));
       return call_of(nn::TransformerDecoder(layer, 2), leaf({5, 2, 4}), leaf({6, 2, 4}));
     }},
    {"TransformerDecoderLayer",
     [] {
       const auto options = nn::TransformerDecoderLayerOptions(4, 2).dim_feedforward(6);
       return call_of(nn::TransformerDecoderLayer(options), leaf({5, 2, 4}), leaf({6, 2, 4}));
     }},
    {"TransformerEncoder",
     [] {
       const nn::TransformerEncoderLayer layer(nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(6));
       return call_of(nn::TransformerEncoder(layer, 2), leaf({5, 2, 4}));
     }},
    {"TransformerEncoderLayer",
     [] {
       const auto options = nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(6);
       return call_of(nn::TransformerEncoderLayer(options), leaf({5, 2, 4}));
     }},
    {"TripletMarginLoss", [] { return call_of(nn::TripletMarginLoss(), leaf({4, 3}), leaf({4, 3}), leaf({4, 3})); }},
    {"TripletMarginWithDistanceLoss",
     [] { return call_of(nn::TripletMarginWithDistanceLoss(), leaf({4, 3}), leaf({4, 3}), leaf({4, 3})); }},
    {"Unflatten", [] { return call_of(nn::Unflatten(nn::UnflattenOptions(1, {2, 3})), leaf({4, 6})); }},
    {"Unfold", [] { return call_of(nn::Unfold(nn::UnfoldOptions({2, 2})), leaf({2, 3, 4, 5})); }},
    {"Upsample",
     [] {
       const auto options = nn::UpsampleOptions().scale_factor(std::vector<double>{2.0, 2.0}).mode(torch::kNearest);
       return call_of(nn::Upsample(options), leaf({2, 3, 4, 5}));
     }},
    {"ZeroPad1d", [] { return call_of(nn::ZeroPad1d(1), leaf({2, 3, 4})); }},
    {"ZeroPad2d", [] { return call_of(nn::ZeroPad2d(1), leaf({2, 3, 4, 5})); }},
    {"ZeroPad3d", [] { return call_of(nn::ZeroPad3d(1), leaf({2, 3, 4, 3, 2})); }},
};

}  // namespace

std::span<const NnProgram> nn_modules() { return kModules; }

}  // namespace rehearse_test
