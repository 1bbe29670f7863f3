// SPDX-License-Identifier: BSD-3-Clause
// LibTorch's functions that answer a question about tensors and return no tensor. During a capture, the capture gives
// the answer.
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/eager_region.h>
#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_errors.h>

#include "bit_equal.h"
#include "core/compile/like_eager/like_eager.h"

// Functions of a user may have the names of LibTorch's. No answer depends on a user's name.
namespace at {

struct Filled {
  double value;
};
// at::tensor() of LibTorch writes to the memory of an empty tensor, this one does not.
Tensor tensor(const Filled& filled) { return empty({2}).fill_(filled.value); }

}  // namespace at

namespace mine::torch::autograd {

template <class T>
struct Function {
  static T apply(const at::Tensor& x) { return x.is_view() ? 1 : 2; }
};
std::int64_t grad(const at::Tensor& x) { return at::ones_like(x).numel(); }
std::int64_t _wrap_outputs(const at::Tensor& x) { return x.is_leaf() ? 1 : 2; }

}  // namespace mine::torch::autograd

namespace rehearse::compiler::questions_test {
namespace {

using rehearse::test::BitEqual;

using Question = bool (*)(const at::Tensor& x, const at::Tensor& y);

const Question kQuestions[] = {
    [](const at::Tensor& x, const at::Tensor& y) { return at::is_same_size(x, y); },
    [](const at::Tensor& x, const at::Tensor& y) { return x.is_same_size(y.t()); },
    [](const at::Tensor& x, const at::Tensor& y) { return x.is_set_to(y); },
    [](const at::Tensor& x, const at::Tensor&) { return x.is_set_to(x); },
    [](const at::Tensor& x, const at::Tensor&) { return x.is_pinned(); },
    [](const at::Tensor& x, const at::Tensor& y) { return at::_has_same_storage_numel(x, y); },
    [](const at::Tensor& x, const at::Tensor&) { return x.is_floating_point() && !x.is_complex(); },
    [](const at::Tensor& x, const at::Tensor&) { return x.is_contiguous() && x.is_nonzero(); },
};

TEST(Questions, AreAnsweredAsInEagerMode) {
  int number = 0;
  for (const Question question : kQuestions) {
    SCOPED_TRACE(number++);
    const auto function = [question](const at::Tensor& x, const at::Tensor& y) {
      return question(x, y) ? x * 2 : y * 3;
    };
    auto compiled = compile(function);
    for (const std::int64_t rows : {1, 1, 2, 3}) {
      const at::Tensor x = number == 8 ? at::ones({1, 1}) : at::randn({rows, 2}), y = at::randn({2, rows}).t();
      EXPECT_THAT(compiled(x, y), BitEqual(function(x, y)));
      EXPECT_THAT(compiled(x, x), BitEqual(function(x, x)));
    }
  }
}

// nonzero() returns a column-major tensor, and tensors computed from it have such a layout, too. If there is at most
// one row, this layout is also contiguous. So data decides whether the tensor is contiguous, and code that asks must
// take the branch of eager mode.
TEST(Questions, AboutALayoutThatDependsOnData_AreAnsweredAsInEagerMode) {
  using Function = at::Tensor (*)(const at::Tensor& x);
  const Function functions[] = {
      [](const at::Tensor& x) { return x.nonzero(); },
      [](const at::Tensor& x) { return x.nonzero() + at::zeros({1, 2}, at::kLong); },
      [](const at::Tensor& x) { return x.index({x.nonzero()}); },
      [](const at::Tensor& x) { return x.index({x.nonzero()}).permute({2, 0, 1}) + 1; },
      [](const at::Tensor& x) { return at::ones_like(x.nonzero().t()); },
  };
  at::Tensor one_row = at::zeros({4, 4});
  one_row[1][2] = 1;
  for (const Function function : functions) {
    const auto branch = [function](const at::Tensor& x) {
      const at::Tensor y = function(x);
      return y.is_contiguous() ? y * 2 : y * 3;
    };
    for (const bool contiguous_first : {false, true}) {
      auto compiled = compile(branch);
      for (const bool contiguous : {contiguous_first, !contiguous_first}) {
        const at::Tensor x = contiguous ? one_row : at::eye(4);
        EXPECT_THAT(compiled(x), BitEqual(branch(x)));
      }
    }
  }
}

using rehearse_test::Tensors;

bool my_multi_head_attention_forward(const at::Tensor& a, const at::Tensor& b) { return at::equal(a, b); }
bool zero_grad(const at::Tensor& x) { return x.requires_grad(); }

struct AsksForward : torch::autograd::Function<AsksForward> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x * (x.is_view() ? 2 : 3);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0] * 2};
  }
};

struct Asked {
  const char* name;
  std::int64_t (*answer)(const at::Tensor& x);
};

// Each question that compile() answers without reading data, and others beside it. x: [2, 2].
const Asked kAsked[] = {
    {"equal: a tensor and itself", [](const at::Tensor& x) -> std::int64_t { return at::equal(x, x); }},
    {"equal: a computed tensor and itself",
     [](const at::Tensor& x) -> std::int64_t {
       const at::Tensor y = x * 2;
       return at::equal(y, y);
     }},
    {"equal: integers",
     [](const at::Tensor& x) -> std::int64_t {
       const at::Tensor y = x.isnan();
       return at::equal(y, y);
     }},
    {"equal: complex numbers",
     [](const at::Tensor& x) -> std::int64_t {
       const at::Tensor y = at::complex(at::zeros({2, 2}), x.detach());
       return at::equal(y, y);
     }},
    {"equal: other sizes", [](const at::Tensor& x) -> std::int64_t { return at::equal(x, x.sum(0)); }},
    {"equal: other dtypes", [](const at::Tensor& x) -> std::int64_t { return at::equal(x, x.isnan()); }},
    {"equal: undefined tensors", [](const at::Tensor& x) -> std::int64_t { return at::equal(x, at::Tensor()); }},
    {"equal: by a user's attention",
     [](const at::Tensor& x) -> std::int64_t { return my_multi_head_attention_forward(x, x.clone()); }},
    {"allclose", [](const at::Tensor& x) -> std::int64_t { return at::allclose(x, x); }},
    {"is_nonzero", [](const at::Tensor& x) -> std::int64_t { return at::is_nonzero(x.isnan().any()); }},
    {"item: a constant", [](const at::Tensor&) -> std::int64_t { return at::tensor(3).item<int>(); }},
    {"item: a constant that was changed",
     [](const at::Tensor& x) -> std::int64_t { return at::tensor(3).add_(x.isnan().sum()).item<int>(); }},
    {"item: a user's at::tensor()",
     [](const at::Tensor&) -> std::int64_t { return at::tensor(at::Filled{3}).sum().item<int>(); }},
    {"size(): of nonzero()", [](const at::Tensor& x) -> std::int64_t { return x.isnan().nonzero().size(0); }},
    {"is_view: an argument", [](const at::Tensor& x) -> std::int64_t { return x.is_view(); }},
    {"is_view: a view", [](const at::Tensor& x) -> std::int64_t { return (x * 2).t().is_view(); }},
    {"is_view: detached", [](const at::Tensor& x) -> std::int64_t { return (x * 2).detach().is_view(); }},
    {"is_view: by a user's autograd",
     [](const at::Tensor& x) { return mine::torch::autograd::Function<std::int64_t>::apply(x.t()); }},
    {"is_view: in a Function's forward",
     [](const at::Tensor& x) -> std::int64_t {
       const at::NoGradGuard no_grad;
       return AsksForward::apply(at::ones({2}).t()).sum().item<std::int64_t>() + x.dim();
     }},
    {"_base", [](const at::Tensor& x) -> std::int64_t { return (x * 2).t()._base().stride(0); }},
    {"is_leaf: an argument", [](const at::Tensor& x) -> std::int64_t { return x.is_leaf(); }},
    {"is_leaf: a computed tensor", [](const at::Tensor& x) -> std::int64_t { return (x * 2).is_leaf(); }},
    {"is_leaf: without history", [](const at::Tensor& x) -> std::int64_t { return x.isnan().is_leaf(); }},
    {"is_leaf: by a user's autograd", [](const at::Tensor& x) { return mine::torch::autograd::_wrap_outputs(x * 2); }},
    {"is_leaf: a view whose base got a history",
     [](const at::Tensor& x) -> std::int64_t {
       const at::Tensor base = at::zeros({4, 2}), view = base.slice(0, 0, 2);
       base.slice(0, 2, 4).add_(x);
       return view.is_leaf() * 2 + view.requires_grad();
     }},
    {"is_leaf: that view, after its grad_fn()",
     [](const at::Tensor& x) -> std::int64_t {
       const at::Tensor base = at::zeros({4, 2}), view = base.slice(0, 0, 2);
       base.slice(0, 2, 4).add_(x);
       const bool has_step = view.grad_fn() != nullptr;
       return view.is_leaf() * 2 + has_step;
     }},
    {"is_leaf: what may be an argument",
     [](const at::Tensor& x) -> std::int64_t { return x.contiguous().is_leaf() + 2 * x.expand({2, 2}).is_leaf(); }},
    {"is_leaf: a view made without grad mode",
     [](const at::Tensor& x) -> std::int64_t {
       const at::AutoGradMode off(false);
       const at::Tensor view = (x * 2).t(), of_argument = x.t();
       return view.is_leaf() + 2 * of_argument.is_leaf();
     }},
    {"is_leaf: what got its history in place",
     [](const at::Tensor& x) -> std::int64_t {
       const at::Tensor made = at::zeros({2, 2});
       made.add_(x);
       return made.is_leaf() + 2 * made.requires_grad();
     }},
    {"is_leaf: a view whose base got a history, changed without grad mode",
     [](const at::Tensor& x) -> std::int64_t {
       const at::Tensor base = at::zeros({4, 2}), view = base.slice(0, 0, 2);
       base.slice(0, 2, 4).add_(x);
       const at::AutoGradMode off(false);
       view.add_(1);
       return view.is_leaf();
     }},
    {"is_leaf: what is computed from a leaf of a region",
     [](const at::Tensor& x) -> std::int64_t {
       const at::Tensor made = eager_region([](const at::Tensor& t) { return t.detach().clone().requires_grad_(); }, x);
       return (made * 2).is_leaf();
     }},
    {"output_nr: an argument", [](const at::Tensor& x) { return static_cast<std::int64_t>(x.output_nr()); }},
    {"output_nr: a chunk",
     [](const at::Tensor& x) { return static_cast<std::int64_t>((x * 2).chunk(2)[1].output_nr()); }},
    {"output_nr: without history",
     [](const at::Tensor& x) { return static_cast<std::int64_t>(x.isnan().chunk(2)[1].output_nr()); }},
    {"grad_fn: its name",
     [](const at::Tensor& x) {
       const auto step = (x * 2).sin().grad_fn();
       return static_cast<std::int64_t>(step ? step->name().size() : 0);
     }},
    {"grad_fn: without history", [](const at::Tensor& x) -> std::int64_t { return x.isnan().grad_fn() == nullptr; }},
    {"is_view: a view, twice",
     [](const at::Tensor& x) -> std::int64_t {
       const at::Tensor y = (x * 2).t();
       return y.is_view() + 2 * y.is_view() + 4 * y.detach().is_view();
     }},
    {"is_leaf: behind a read",
     [](const at::Tensor& x) -> std::int64_t {
       const at::Tensor y = x.detach() * 2;
       return y.isnan().any().item<bool>() * 2 + y.is_leaf() + 4 * x.is_leaf() + 8 * x.output_nr();
     }},
    {"is_leaf: behind a read, of what was computed in front of it, and detached",
     [](const at::Tensor& x) -> std::int64_t {
       const at::Tensor y = x * 2, z = x * 3;
       const bool has_nan = y.isnan().any().item<bool>();
       const bool was_leaf = y.is_leaf(), is_leaf = (y + z).is_leaf();
       y.detach_();
       y.requires_grad_();
       return has_nan + 2 * was_leaf + 4 * is_leaf + 8 * y.is_leaf() + 16 * z.is_leaf();
     }},
    {"is_view: behind a read, of what is computed there",
     [](const at::Tensor& x) -> std::int64_t {
       const at::Tensor y = x * 2;
       const bool has_nan = y.isnan().any().item<bool>();
       const at::Tensor z = y * 3, same = z.contiguous();
       const bool is_view = y.t().is_view();
       return has_nan + 2 * is_view + 4 * z.is_view() + 8 * same.is_view() + 16 * z.detach().is_view();
     }},
    {"retains_grad: an argument", [](const at::Tensor& x) -> std::int64_t { return x.retains_grad(); }},
    {"retains_grad: a computed tensor", [](const at::Tensor& x) -> std::int64_t { return (x * 2).retains_grad(); }},
    {"name", [](const at::Tensor& x) { return static_cast<std::int64_t>(x.name().size()); }},
    {"grad_dtype", [](const at::Tensor& x) { return static_cast<std::int64_t>(x.grad_dtype().value_or(at::kDouble)); }},
    {"requires_grad",
     [](const at::Tensor& x) -> std::int64_t { return x.requires_grad() + 2 * x.isnan().requires_grad(); }},
    {"requires_grad: by a user's zero_grad()", [](const at::Tensor& x) -> std::int64_t { return zero_grad(x * 2); }},
    {"ones_like: by a user's grad()", [](const at::Tensor& x) { return mine::torch::autograd::grad(x); }},
    {"is_inference", [](const at::Tensor& x) -> std::int64_t { return x.is_inference() + 2 * (x * 2).is_inference(); }},
};

// The same question is asked of a leaf, of a result that has a name and retains its gradient, of a view that is the
// second output of its node, and of tensors with a NaN.
Tensors asked_tensors() {
  const at::Tensor leaf = at::ones({2, 2}).requires_grad_(), base = at::ones({4, 2}).requires_grad_();
  at::Tensor with_nan = at::ones({2, 2});
  with_nan[0][1] = std::nan("");
  const at::Tensor result = leaf * 2;
  result.retain_grad();
  torch::autograd::impl::set_name(result, "result");
  at::Tensor no_dtype = at::ones({2, 2}).requires_grad_();
  no_dtype.set_grad_dtype(std::nullopt);
  return {leaf, result, (base * 2).chunk(2)[1], with_nan, with_nan.clone().requires_grad_(), no_dtype, leaf.detach()};
}

// Calls the function for each tensor, and for some again. One graph may hold the code for some tensors only: then it
// throws for the others, and refuses code that asks about more than it knows.
void expect_answers(const Asked& asked, CompileOptions options) {
  const auto function = [answer = asked.answer](const at::Tensor& x) {
    const std::int64_t number = answer(x);
    return x.detach().nan_to_num() * (number + 2);
  };
  auto compiled = compile(function, options);
  const Tensors tensors = asked_tensors();
  for (std::size_t i = 0; i < tensors.size() + 3; ++i) {
    const at::Tensor& x = tensors[i % tensors.size()];
    std::optional<at::Tensor> expected, answered;
    std::string refused;
    try {
      expected = function(x);
    } catch (const std::exception&) {
    }
    try {
      answered = compiled(x);
    } catch (const std::exception& error) {
      refused = error.what();
    }
    if (options.fullgraph && !answered) continue;
    ASSERT_EQ(answered.has_value(), expected.has_value()) << i << " " << refused.substr(0, 200);
    if (!answered) continue;
    EXPECT_THAT(*answered, BitEqual(*expected)) << i;
  }
}

void expect_all_answers(const CompileOptions& options) {
  for (const Asked& asked : kAsked) {
    SCOPED_TRACE(asked.name);
    expect_answers(asked, options);
  }
}

TEST(Questions, WithoutData_AreAnsweredAsInEagerMode) { expect_all_answers({}); }
TEST(Questions, WithoutDataInEachCall_AreAnsweredAsInEagerMode) { expect_all_answers({.verify = Verify::Always}); }
TEST(Questions, WithoutDataInOneGraph_AreAnsweredAsInEagerModeOrRefused) { expect_all_answers({.fullgraph = true}); }

using Called = std::function<at::Tensor(const at::Tensor&)>;

struct CallsInForward : torch::autograd::Function<CallsInForward> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x, const Called& called) {
    return called(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0] * 7, at::Tensor()};
  }
};

// Gives the result of a call in the forward of a custom Function, and that of a call in a gradient hook.
Tensors call_in_autograd(const Called& called) {
  const at::Tensor x = at::arange(4.0).view({2, 2}).requires_grad_();
  const at::Tensor y = CallsInForward::apply(x, called);
  const at::Tensor z = x * y.detach();
  z.register_hook([&called](const at::Tensor& gradient) { return called(gradient); });
  (z * 3 + y.sum()).sum().backward();
  return {y, x.grad()};
}

// The code around a compiled function belongs to autograd. The function itself neither is a custom Function nor calls
// backward().
TEST(Questions, InAFunctionAndInAHook_AreAnsweredAsInEagerMode) {
  using Code = at::Tensor (*)(const at::Tensor& x);
  const Code codes[] = {
      [](const at::Tensor& x) { return x.is_view() ? x * 2 : x * 3; },
      [](const at::Tensor& x) { return at::ones_like(x) * x; },
      [](const at::Tensor& x) { return x.t().is_view() ? x * 2 : x * 3; },
      [](const at::Tensor& x) { return (x * 2).is_leaf() ? x * 2 : x * 3; },
      [](const at::Tensor& x) { return x.sum().item<double>() > 5 ? x * 2 : x * 3; },
      [](const at::Tensor& x) { return x.data() * 2; },
      [](const at::Tensor& x) {
        const at::Tensor y = x.sum().item<double>() > 5 ? x * 2 : x * 3;
        return at::ones_like(y) * y.data();
      },
      [](const at::Tensor& x) {
        at::AutoGradMode on(true);
        const at::Tensor y = x.detach().requires_grad_();
        return torch::autograd::grad({y.sin().sum()}, {y})[0] + x;
      },
  };
  for (const Code code : codes) {
    SCOPED_TRACE(&code - codes);
    const Tensors expected = call_in_autograd(code);
    for (const CompileOptions& options :
         {CompileOptions{}, CompileOptions{.backend = "eager"}, CompileOptions{.verify = Verify::Always}}) {
      auto compiled = compile(code, options);
      for (int call = 0; call < 3; ++call) {
        const Tensors found = call_in_autograd([&](const at::Tensor& x) { return compiled(x); });
        EXPECT_THAT(found[0], BitEqual(expected[0]));
        EXPECT_THAT(found[1], BitEqual(expected[1]));
      }
    }
  }
}

TEST(Questions, InAHook_CodeWithoutQuestionsIsOneGraph) {
  auto compiled = compile([](const at::Tensor& x) { return at::ones_like(x) * x.sin(); }, {.fullgraph = true});
  for (int call = 0; call < 2; ++call) call_in_autograd([&](const at::Tensor& x) { return compiled(x); });
  EXPECT_EQ(compiled.stats().eager_calls, 0);
  EXPECT_EQ(compiled.stats().hits, 4 - compiled.stats().compiles);
}

}  // namespace
}  // namespace rehearse::compiler::questions_test
