// SPDX-License-Identifier: BSD-3-Clause
#include <torch/nn/functional.h>
#include <torch/nn/options.h>

#include "core/compile/like_eager/nn_programs.h"

namespace rehearse_test {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

namespace {

using G = const Tensors&;

at::Tensor signs_of(at::IntArrayRef sizes) { return at::randint(2, sizes, at::kFloat) * 2 - 1; }
at::Tensor probability_leaf(at::IntArrayRef sizes) { return at::rand(sizes).requires_grad_(); }

std::tuple<at::Tensor, at::Tensor> attention(G g) {
  const auto options = F::MultiheadAttentionForwardFuncOptions(4, 2, g[3], g[4], {}, {}, false, 0.5, g[5], g[6]);
  return F::multi_head_attention_forward(g[0], g[1], g[2], options);
}

const NnProgram kFunctions[] = {
    {"adaptive_avg_pool1d",
     [] {
       return function_of([](G g) { return F::adaptive_avg_pool1d(g[0], F::AdaptiveAvgPool1dFuncOptions(2)); },
                          leaf({2, 3, 6}));
     }},
    {"adaptive_avg_pool2d",
     [] {
       return function_of([](G g) { return F::adaptive_avg_pool2d(g[0], F::AdaptiveAvgPool2dFuncOptions(2)); },
                          leaf({2, 3, 6, 5}));
     }},
    {"adaptive_avg_pool3d",
     [] {
       return function_of([](G g) { return F::adaptive_avg_pool3d(g[0], F::AdaptiveAvgPool3dFuncOptions(2)); },
                          leaf({2, 3, 6, 5, 4}));
     }},
    {"adaptive_max_pool1d_with_indices",
     [] {
       return function_of(
           [](G g) { return F::adaptive_max_pool1d_with_indices(g[0], F::AdaptiveMaxPool1dFuncOptions(2)); },
           leaf({2, 3, 6}));
     }},
    {"adaptive_max_pool2d_with_indices",
     [] {
       return function_of(
           [](G g) { return F::adaptive_max_pool2d_with_indices(g[0], F::AdaptiveMaxPool2dFuncOptions(2)); },
           leaf({2, 3, 6, 5}));
     }},
    {"adaptive_max_pool3d",
     [] {
       return function_of([](G g) { return F::adaptive_max_pool3d(g[0], F::AdaptiveMaxPool3dFuncOptions(2)); },
                          leaf({2, 3, 6, 5, 4}));
     }},
    {"affine_grid",
     [] { return function_of([](G g) { return F::affine_grid(g[0], {2, 3, 4, 5}); }, leaf({2, 2, 3})); }},
    {"alpha_dropout",
     [] {
       const auto options = F::AlphaDropoutFuncOptions().p(0.5).training(true);
       return function_of([options](G g) { return F::alpha_dropout(g[0], options); }, leaf({4, 3}));
     }},
    {"avg_pool1d",
     [] { return function_of([](G g) { return F::avg_pool1d(g[0], F::AvgPool1dFuncOptions(2)); }, leaf({2, 3, 6})); }},
    {"avg_pool2d",
     [] {
       return function_of([](G g) { return F::avg_pool2d(g[0], F::AvgPool2dFuncOptions(2)); }, leaf({2, 3, 6, 5}));
     }},
    {"avg_pool3d",
     [] {
       return function_of([](G g) { return F::avg_pool3d(g[0], F::AvgPool3dFuncOptions(2)); }, leaf({2, 3, 6, 5, 4}));
     }},
    {"batch_norm",
     [] {
       const auto options = F::BatchNormFuncOptions().training(true);
       return function_of([options](G g) { return F::batch_norm(g[0], g[1], g[2], options); }, leaf({4, 3}), fixed({3}),
                          fixed({3}));
     }},
    {"bilinear",
     [] {
       return function_of([](G g) { return F::bilinear(g[0], g[1], g[2]); }, leaf({2, 3}), fixed({2, 4}),
                          leaf({5, 3, 4}));
     }},
    {"binary_cross_entropy",
     [] {
       return function_of([](G g) { return F::binary_cross_entropy(g[0], g[1]); }, probability_leaf({4, 3}),
                          fixed({4, 3}));
     }},
    {"binary_cross_entropy_with_logits",
     [] {
       return function_of([](G g) { return F::binary_cross_entropy_with_logits(g[0], g[1]); }, leaf({4, 3}),
                          fixed({4, 3}));
     }},
    {"celu", [] { return function_of([](G g) { return F::celu(g[0]); }, leaf({4, 3})); }},
    {"conv1d", [] { return function_of([](G g) { return F::conv1d(g[0], g[1]); }, leaf({2, 3, 6}), leaf({4, 3, 2})); }},
    {"conv2d",
     [] { return function_of([](G g) { return F::conv2d(g[0], g[1]); }, fixed({2, 3, 6, 5}), leaf({4, 3, 2, 2})); }},
    {"conv3d",
     [] {
       return function_of([](G g) { return F::conv3d(g[0], g[1]); }, leaf({1, 3, 4, 5, 6}), fixed({2, 3, 2, 2, 2}));
     }},
    {"conv_transpose1d",
     [] { return function_of([](G g) { return F::conv_transpose1d(g[0], g[1]); }, leaf({2, 3, 6}), leaf({3, 4, 2})); }},
    {"conv_transpose2d",
     [] {
       return function_of([](G g) { return F::conv_transpose2d(g[0], g[1]); }, leaf({2, 3, 6, 5}), leaf({3, 4, 2, 2}));
     }},
    {"conv_transpose3d",
     [] {
       return function_of([](G g) { return F::conv_transpose3d(g[0], g[1]); }, leaf({1, 3, 4, 5, 6}),
                          leaf({3, 2, 2, 2, 2}));
     }},
    {"cosine_embedding_loss",
     [] {
       return function_of([](G g) { return F::cosine_embedding_loss(g[0], g[1], g[2]); }, leaf({4, 3}), fixed({4, 3}),
                          signs_of({4}));
     }},
    {"cosine_similarity",
     [] { return function_of([](G g) { return F::cosine_similarity(g[0], g[1]); }, leaf({4, 3}), fixed({4, 3})); }},
    {"cross_entropy",
     [] { return function_of([](G g) { return F::cross_entropy(g[0], g[1]); }, leaf({4, 3}), indices({4}, 3)); }},
    {"cross_entropy_of_probabilities",
     [] { return function_of([](G g) { return F::cross_entropy(g[0], g[1]); }, leaf({4, 3}), fixed({4, 3})); }},
    {"ctc_loss",
     [] {
       const at::Tensor lengths = at::full({2}, 3, at::kLong);
       return function_of([](G g) { return F::ctc_loss(g[0], g[1], g[2], g[3]); },
                          at::randn({7, 2, 5}).log_softmax(2).requires_grad_(), indices({2, 3}, 4) + 1, lengths + 4,
                          lengths);
     },
     "memory of a fake tensor"},
    {"dropout",
     [] { return function_of([](G g) { return F::dropout(g[0], F::DropoutFuncOptions().p(0.5)); }, leaf({4, 3})); }},
    {"dropout_in_evaluation",
     [] {
       const auto options = F::DropoutFuncOptions().training(false);
       return function_of([options](G g) { return F::dropout(g[0], options) + g[1]; }, fixed({4, 3}), leaf({4, 3}));
     }},
    {"dropout2d", [] { return function_of([](G g) { return F::dropout2d(g[0]); }, leaf({2, 3, 4, 5})); }},
    {"dropout3d", [] { return function_of([](G g) { return F::dropout3d(g[0]); }, leaf({2, 3, 4, 3, 2})); }},
    {"elu", [] { return function_of([](G g) { return F::elu(g[0]); }, leaf({4, 3})); }},
    {"embedding",
     [] { return function_of([](G g) { return F::embedding(g[0], g[1]); }, indices({2, 4}, 6), leaf({6, 3})); }},
    {"embedding_bag",
     [] { return function_of([](G g) { return F::embedding_bag(g[0], g[1]); }, indices({2, 4}, 6), leaf({6, 3})); }},
    {"feature_alpha_dropout",
     [] { return function_of([](G g) { return F::feature_alpha_dropout(g[0]); }, leaf({2, 3, 4, 5})); }},
    {"fold",
     [] {
       return function_of([](G g) { return F::fold(g[0], F::FoldFuncOptions({3, 3}, {2, 2})); }, leaf({2, 12, 4}));
     }},
    {"fractional_max_pool2d",
     [] {
       const auto options = F::FractionalMaxPool2dFuncOptions(2).output_size(2);
       return function_of([options](G g) { return F::fractional_max_pool2d(g[0], options); }, leaf({2, 3, 6, 5}));
     }},
    {"fractional_max_pool3d",
     [] {
       const auto options = F::FractionalMaxPool3dFuncOptions(2).output_size(2);
       return function_of([options](G g) { return F::fractional_max_pool3d_with_indices(g[0], options); },
                          leaf({2, 3, 6, 5, 4}));
     }},
    {"gelu", [] { return function_of([](G g) { return F::gelu(g[0]); }, leaf({4, 3})); }},
    {"glu", [] { return function_of([](G g) { return F::glu(g[0]); }, leaf({4, 6})); }},
    {"grid_sample",
     [] {
       const auto options = F::GridSampleFuncOptions().align_corners(false);
       return function_of([options](G g) { return F::grid_sample(g[0], g[1], options); }, leaf({2, 3, 4, 5}),
                          fixed({2, 4, 5, 2}));
     }},
    {"group_norm",
     [] {
       const auto options = F::GroupNormFuncOptions(2);
       return function_of([options](G g) { return F::group_norm(g[0], options); }, leaf({2, 4, 5}));
     }},
    {"gumbel_softmax",
     [] {
       const auto options = F::GumbelSoftmaxFuncOptions().hard(true);
       return function_of([options](G g) { return F::gumbel_softmax(g[0], options); }, leaf({4, 3}));
     }},
    {"hardshrink", [] { return function_of([](G g) { return F::hardshrink(g[0]); }, leaf({4, 3})); }},
    {"hardtanh", [] { return function_of([](G g) { return F::hardtanh(g[0]); }, leaf({4, 3})); }},
    {"hinge_embedding_loss",
     [] {
       return function_of([](G g) { return F::hinge_embedding_loss(g[0], g[1]); }, leaf({4, 3}), signs_of({4, 3}));
     }},
    {"huber_loss",
     [] { return function_of([](G g) { return F::huber_loss(g[0], g[1]); }, leaf({4, 3}), fixed({4, 3})); }},
    {"instance_norm", [] { return function_of([](G g) { return F::instance_norm(g[0]); }, leaf({2, 3, 4})); }},
    {"interpolate",
     [] {
       const auto options = F::InterpolateFuncOptions().size(std::vector<std::int64_t>{6, 7}).mode(torch::kBilinear);
       return function_of([options](G g) { return F::interpolate(g[0], options); }, leaf({2, 3, 4, 5}));
     }},
    {"kl_div", [] { return function_of([](G g) { return F::kl_div(g[0], g[1]); }, leaf({4, 3}), fixed({4, 3})); }},
    {"l1_loss", [] { return function_of([](G g) { return F::l1_loss(g[0], g[1]); }, leaf({4, 3}), fixed({4, 3})); }},
    {"layer_norm",
     [] { return function_of([](G g) { return F::layer_norm(g[0], F::LayerNormFuncOptions({3})); }, leaf({4, 3})); }},
    {"leaky_relu", [] { return function_of([](G g) { return F::leaky_relu(g[0]); }, leaf({4, 3})); }},
    {"linear", [] { return function_of([](G g) { return F::linear(g[0], g[1]); }, fixed({2, 4, 3}), leaf({5, 3})); }},
    {"local_response_norm",
     [] {
       const F::LocalResponseNormFuncOptions options(2);
       return function_of([options](G g) { return F::local_response_norm(g[0], options); }, leaf({2, 3, 4, 5}));
     }},
    {"log_softmax", [] { return function_of([](G g) { return F::log_softmax(g[0], 1); }, leaf({4, 3})); }},
    {"logsigmoid", [] { return function_of([](G g) { return F::logsigmoid(g[0]); }, leaf({4, 3})); }},
    {"lp_pool1d",
     [] {
       const F::LPPool1dFuncOptions options(2, 2);
       return function_of([options](G g) { return F::lp_pool1d(g[0], options); }, probability_leaf({2, 3, 6}));
     }},
    {"lp_pool2d",
     [] {
       const F::LPPool2dFuncOptions options(2, 2);
       return function_of([options](G g) { return F::lp_pool2d(g[0], options); }, probability_leaf({2, 3, 6, 5}));
     }},
    {"lp_pool3d",
     [] {
       const F::LPPool3dFuncOptions options(2, 2);
       return function_of([options](G g) { return F::lp_pool3d(g[0], options); }, probability_leaf({2, 3, 6, 5, 4}));
     }},
    {"margin_ranking_loss",
     [] {
       return function_of([](G g) { return F::margin_ranking_loss(g[0], g[1], g[2]); }, leaf({4}), fixed({4}),
                          signs_of({4}));
     }},
    {"max_pool1d",
     [] { return function_of([](G g) { return F::max_pool1d(g[0], F::MaxPool1dFuncOptions(2)); }, leaf({2, 3, 6})); }},
    {"max_pool1d_of_data",
     [] { return function_of([](G g) { return F::max_pool1d(g[0], F::MaxPool1dFuncOptions(2)); }, fixed({2, 3, 6})); }},
    {"max_pool1d_with_indices",
     [] {
       return function_of([](G g) { return F::max_pool1d_with_indices(g[0], F::MaxPool1dFuncOptions(2)); },
                          leaf({2, 3, 6}));
     }},
    {"max_pool2d",
     [] {
       return function_of([](G g) { return F::max_pool2d(g[0], F::MaxPool2dFuncOptions(2)); }, leaf({2, 3, 6, 5}));
     }},
    {"max_pool2d_with_indices",
     [] {
       return function_of([](G g) { return F::max_pool2d_with_indices(g[0], F::MaxPool2dFuncOptions(2)); },
                          leaf({2, 3, 6, 5}));
     }},
    {"max_pool3d",
     [] {
       return function_of([](G g) { return F::max_pool3d(g[0], F::MaxPool3dFuncOptions(2)); }, leaf({2, 3, 6, 5, 4}));
     }},
    {"max_unpool1d",
     [] {
       const F::MaxUnpool1dFuncOptions options(2);
       return function_of([options](G g) { return F::max_unpool1d(g[0], g[1], options); }, leaf({1, 1, 2}),
                          (at::arange(2) * 2).view({1, 1, 2}));
     }},
    {"max_unpool2d",
     [] {
       const F::MaxUnpool2dFuncOptions options(2);
       return function_of([options](G g) { return F::max_unpool2d(g[0], g[1], options); }, leaf({1, 1, 2, 2}),
                          (at::arange(4) * 3).view({1, 1, 2, 2}));
     }},
    {"max_unpool3d",
     [] {
       const F::MaxUnpool3dFuncOptions options(2);
       return function_of([options](G g) { return F::max_unpool3d(g[0], g[1], options); }, leaf({1, 1, 2, 2, 2}),
                          (at::arange(8) * 5).view({1, 1, 2, 2, 2}));
     }},
    {"mish", [] { return function_of([](G g) { return F::mish(g[0]); }, leaf({4, 3})); }},
    {"mse_loss", [] { return function_of([](G g) { return F::mse_loss(g[0], g[1]); }, leaf({4, 3}), fixed({4, 3})); }},
    {"multi_head_attention_forward",
     [] {
       return function_of(attention, leaf({5, 2, 4}), leaf({6, 2, 4}), leaf({6, 2, 4}), leaf({12, 4}), leaf({12}),
                          leaf({4, 4}), leaf({4}));
     }},
    {"multi_margin_loss",
     [] { return function_of([](G g) { return F::multi_margin_loss(g[0], g[1]); }, leaf({4, 3}), indices({4}, 3)); }},
    {"multilabel_margin_loss",
     [] {
       return function_of([](G g) { return F::multilabel_margin_loss(g[0], g[1]); }, leaf({4, 3}), indices({4, 3}, 3));
     }},
    {"multilabel_soft_margin_loss",
     [] {
       return function_of([](G g) { return F::multilabel_soft_margin_loss(g[0], g[1]); }, leaf({4, 3}), fixed({4, 3}));
     }},
    {"nll_loss",
     [] { return function_of([](G g) { return F::nll_loss(g[0], g[1]); }, leaf({4, 3}), indices({4}, 3)); }},
    {"normalize", [] { return function_of([](G g) { return F::normalize(g[0]); }, leaf({4, 3})); }},
    {"one_hot", [] { return function_of([](G g) { return F::one_hot(g[0], 3); }, indices({4}, 3)); },
     "_local_scalar_dense"},
    {"pad", [] { return function_of([](G g) { return F::pad(g[0], F::PadFuncOptions({1, 2})); }, leaf({4, 3})); }},
    {"pairwise_distance",
     [] { return function_of([](G g) { return F::pairwise_distance(g[0], g[1]); }, leaf({4, 3}), fixed({4, 3})); }},
    {"pdist", [] { return function_of([](G g) { return F::pdist(g[0]); }, leaf({4, 3})); }},
    {"pixel_shuffle", [] { return function_of([](G g) { return F::pixel_shuffle(g[0], 2); }, leaf({2, 4, 3, 3})); }},
    {"pixel_unshuffle",
     [] { return function_of([](G g) { return F::pixel_unshuffle(g[0], 2); }, leaf({2, 1, 4, 4})); }},
    {"poisson_nll_loss",
     [] { return function_of([](G g) { return F::poisson_nll_loss(g[0], g[1]); }, leaf({4, 3}), fixed({4, 3})); }},
    {"prelu", [] { return function_of([](G g) { return F::prelu(g[0], g[1]); }, fixed({4, 3}), leaf({3})); }},
    {"relu", [] { return function_of([](G g) { return F::relu(g[0]); }, leaf({4, 3})); }},
    {"relu6", [] { return function_of([](G g) { return F::relu6(g[0]); }, leaf({4, 3})); }},
    {"rrelu",
     [] {
       return function_of([](G g) { return F::rrelu(g[0], F::RReLUFuncOptions().training(true)); }, leaf({4, 3}));
     }},
    {"selu", [] { return function_of([](G g) { return F::selu(g[0]); }, leaf({4, 3})); }},
    {"silu", [] { return function_of([](G g) { return F::silu(g[0]); }, leaf({4, 3})); }},
    {"smooth_l1_loss",
     [] { return function_of([](G g) { return F::smooth_l1_loss(g[0], g[1]); }, leaf({4, 3}), fixed({4, 3})); }},
    {"soft_margin_loss",
     [] { return function_of([](G g) { return F::soft_margin_loss(g[0], g[1]); }, leaf({4, 3}), signs_of({4, 3})); }},
    {"softmax", [] { return function_of([](G g) { return F::softmax(g[0], 1); }, leaf({4, 3})); }},
    {"softmin", [] { return function_of([](G g) { return F::softmin(g[0], 1); }, leaf({4, 3})); }},
    {"softplus", [] { return function_of([](G g) { return F::softplus(g[0]); }, leaf({4, 3})); }},
    {"softshrink", [] { return function_of([](G g) { return F::softshrink(g[0]); }, leaf({4, 3})); }},
    {"softsign", [] { return function_of([](G g) { return F::softsign(g[0]); }, leaf({4, 3})); }},
    {"tanhshrink", [] { return function_of([](G g) { return F::tanhshrink(g[0]); }, leaf({4, 3})); }},
    {"threshold",
     [] { return function_of([](G g) { return F::threshold(g[0], F::ThresholdFuncOptions(0.1, 2)); }, leaf({4, 3})); }},
    {"triplet_margin_loss",
     [] {
       return function_of([](G g) { return F::triplet_margin_loss(g[0], g[1], g[2]); }, leaf({4, 3}), fixed({4, 3}),
                          fixed({4, 3}));
     }},
    {"triplet_margin_with_distance_loss",
     [] {
       return function_of([](G g) { return F::triplet_margin_with_distance_loss(g[0], g[1], g[2]); }, leaf({4, 3}),
                          fixed({4, 3}), leaf({4, 3}));
     }},
    {"unfold",
     [] { return function_of([](G g) { return F::unfold(g[0], F::UnfoldFuncOptions({2, 2})); }, leaf({2, 3, 4, 5})); }},
};

}  // namespace

std::span<const NnProgram> nn_functions() { return kFunctions; }

}  // namespace rehearse_test
