// SPDX-License-Identifier: BSD-3-Clause
// Statements with losses of torch::nn, gradient hooks, custom autograd functions, single precision, and comparisons of
// a tensor with itself or with its copy.
#include <functional>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/functional/loss.h>

#include "differential/program/operation.h"

namespace rehearse_test::differential {
namespace {

using G = const Given&;
namespace F = torch::nn::functional;

struct Tripled : torch::autograd::Function<Tripled> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x * 3; }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0] * 3};
  }
};

at::Tensor hooked(at::Tensor x, const std::function<at::Tensor(const at::Tensor&)>& hook) {
  if (x.requires_grad()) x.register_hook(hook);
  return x;
}

// Its name contains that of a function of LibTorch.
[[gnu::noinline]] bool my_multi_head_attention_forward(const at::Tensor& a, const at::Tensor& b) {
  return at::equal(a, b);
}

Tensors answer(bool yes) { return Tensors(yes ? 1 : 0); }

// The logarithm of a negative number is NaN, and a NaN differs from itself.
double by_equal_logarithms(const at::Tensor& x) {
  const at::Tensor y = x.log();
  return at::equal(y, y) ? 2 : 0.5;
}

// Some losses have a storage of more than one element, see mse_loss in keeping_operations.cpp.
const Operation kLossOperations[] = {
    {"mse",
     "loss",
     "ff",
     1,
     {},
     "F::mse_loss($0, $1).clone()",
     [](G g) -> Tensors { return {F::mse_loss(g[0], g[1]).clone()}; },
     Match::Same},
    {"mse of each",
     "loss",
     "ff",
     1,
     {},
     "F::mse_loss($0, $1, torch::kNone)",
     [](G g) -> Tensors { return {F::mse_loss(g[0], g[1], torch::kNone)}; },
     Match::Same},
    {"smooth_l1",
     "loss",
     "ff",
     1,
     {},
     "F::smooth_l1_loss($0, $1).clone()",
     [](G g) -> Tensors { return {F::smooth_l1_loss(g[0], g[1]).clone()}; },
     Match::Same},
    {"huber",
     "loss",
     "ff",
     1,
     {},
     "F::huber_loss($0, $1).clone()",
     [](G g) -> Tensors { return {F::huber_loss(g[0], g[1]).clone()}; },
     Match::Same},
    {"l1",
     "loss",
     "ff",
     1,
     {},
     "F::l1_loss($0, $1).clone()",
     [](G g) -> Tensors { return {F::l1_loss(g[0], g[1]).clone()}; },
     Match::Same},
    {"bce",
     "loss",
     "ff",
     1,
     {},
     "F::binary_cross_entropy($0.sigmoid(), $1.sigmoid()).clone()",
     [](G g) -> Tensors { return {F::binary_cross_entropy(g[0].sigmoid(), g[1].sigmoid()).clone()}; },
     Match::Same},
    {"bce with logits",
     "loss",
     "ff",
     1,
     {},
     "F::binary_cross_entropy_with_logits($0, $1).clone()",
     [](G g) -> Tensors { return {F::binary_cross_entropy_with_logits(g[0], g[1]).clone()}; },
     Match::Same},
    {"kl_div",
     "loss",
     "ff",
     1,
     {},
     "F::kl_div($0.log_softmax(-1), $1.softmax(-1)).clone()",
     [](G g) -> Tensors { return {F::kl_div(g[0].log_softmax(-1), g[1].softmax(-1)).clone()}; },
     Match::Same},
    {"soft_margin",
     "loss",
     "ff",
     1,
     {},
     "F::soft_margin_loss($0, $1).clone()",
     [](G g) -> Tensors { return {F::soft_margin_loss(g[0], g[1]).clone()}; },
     Match::Same},
    {"hinge_embedding",
     "loss",
     "ff",
     1,
     {},
     "F::hinge_embedding_loss($0, $1.sign()).clone()",
     [](G g) -> Tensors { return {F::hinge_embedding_loss(g[0], g[1].sign()).clone()}; },
     Match::Same},
    {"margin_ranking",
     "loss",
     "ff",
     1,
     {},
     "F::margin_ranking_loss($0, $1, $0.detach().sign()).clone()",
     [](G g) -> Tensors { return {F::margin_ranking_loss(g[0], g[1], g[0].detach().sign()).clone()}; },
     Match::Same},
    {"poisson_nll",
     "loss",
     "ff",
     1,
     {},
     "F::poisson_nll_loss($0, $1).clone()",
     [](G g) -> Tensors { return {F::poisson_nll_loss(g[0], g[1]).clone()}; },
     Match::Same},
    {"cosine_embedding",
     "loss",
     "ff",
     1,
     {},
     "F::cosine_embedding_loss($0, $1, at::ones({$0.size(0)})).clone()",
     [](G g) -> Tensors { return {F::cosine_embedding_loss(g[0], g[1], at::ones({g[0].size(0)})).clone()}; },
     Match::Same},
    {"cross_entropy of probabilities",
     "loss",
     "ff",
     1,
     {},
     "F::cross_entropy($0, $1.softmax(1)).clone()",
     [](G g) -> Tensors { return {F::cross_entropy(g[0], g[1].softmax(1)).clone()}; },
     Match::Same},
    {"cross_entropy",
     "loss",
     "fi",
     1,
     {},
     "F::cross_entropy($0, $1).clone()",
     [](G g) -> Tensors { return {F::cross_entropy(g[0], g[1]).clone()}; },
     Match::Any},
    {"nll",
     "loss",
     "fi",
     1,
     {},
     "F::nll_loss($0.log_softmax(1), $1).clone()",
     [](G g) -> Tensors { return {F::nll_loss(g[0].log_softmax(1), g[1]).clone()}; },
     Match::Any},
};

const Operation kAutogradOperations[] = {
    {"hook",
     "hook",
     "f",
     1,
     {},
     "hooked($0 * 2, [](g) { return g * %; })",
     [](G g) -> Tensors {
       return {hooked(g[0] * 2, [by = g.factor](const at::Tensor& gradient) { return gradient * by; })};
     }},
    {"hook with a tensor",
     "hook",
     "ff",
     1,
     {},
     "hooked($0 * 2, [](g) { return g * $1.detach(); })",
     [](G g) -> Tensors {
       return {hooked(g[0] * 2, [by = g[1].detach()](const at::Tensor& gradient) { return gradient * by; })};
     },
     Match::Covers},
    {"hook with ones",
     "hook",
     "f",
     1,
     {},
     "hooked($0.sin(), [](g) { return g + at::ones_like(g); })",
     [](G g) -> Tensors {
       return {hooked(g[0].sin(), [](const at::Tensor& gradient) { return gradient + at::ones_like(gradient); })};
     }},
    {"kept hook",
     "kept_hook",
     "f",
     0,
     {},
     "hooked($0, [](g) { return g * %; })",
     [](G g) -> Tensors {
       return hooked(g[0], [by = g.factor](const at::Tensor& gradient) { return gradient * by; }), Tensors();
     },
     Match::Any,
     Control::None,
     0},
    {"custom function",
     "function",
     "f",
     1,
     {},
     "Tripled::apply($0)",
     [](G g) -> Tensors { return {Tripled::apply(g[0])}; }},
    {"to single", "single", "f", 1, {}, "$0.to(at::kFloat)", [](G g) -> Tensors { return {g[0].to(at::kFloat)}; }},
};

const Operation kComparingOperations[] = {
    {"if equal to itself",
     "equal",
     "f",
     1,
     {},
     "at::equal($0, $0)",
     [](G g) { return answer(at::equal(g[0], g[0])); },
     Match::Any,
     Control::Branch},
    {"by equal logarithms",
     "equal",
     "f",
     1,
     {},
     "$0 * [] { y = $0.log(); return at::equal(y, y) ? 2 : 0.5; }()",
     [](G g) -> Tensors { return {g[0] * by_equal_logarithms(g[0])}; }},
    {"if equal in attention",
     "equal",
     "f",
     1,
     {},
     "my_multi_head_attention_forward($0, $0.clone())",
     [](G g) { return answer(my_multi_head_attention_forward(g[0], g[0].clone())); },
     Match::Any,
     Control::Branch},
};

}  // namespace

Operations loss_operations() { return joined({kLossOperations, kAutogradOperations, kComparingOperations}); }

}  // namespace rehearse_test::differential
