// SPDX-License-Identifier: BSD-3-Clause
// Contract: in a backward, a graph behaves like its operators. Autograd does not ask a graph for gradients that its
// operators would not give, and a value has a history exactly if it has one in eager mode.
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <rehearse/capture/forward_capture.h>
#include <rehearse/compile/compile.h>
#include <rehearse_internal/libtorch/nodes.h>

#include "bit_equal.h"
#include "core/compile/like_eager/like_eager.h"

namespace rehearse_test {
namespace {

using rehearse::test::BitEqual;

bool reads(const at::Tensor& x) { return (x.sum() > -1e9).item<bool>(); }

// Inputs: two leaves that require a gradient, and a tensor that does not.
const Program kPrograms[] = {
    {"a value changed behind the read of what else it gave",
     [](const Tensors& g) {
       const at::Tensor v = g[0].abs();
       if (reads(v.abs())) v.detach().mul_(1);
       return Tensors{v};
     }},
    {"a value changed in place behind a read",
     [](const Tensors& g) {
       at::Tensor v = g[0].abs();
       if (reads(v.abs())) v.cumsum_(0);
       return Tensors{g[1] * 2, v};
     }},
    {"a value with a loss changed behind a read, with values that nobody uses",
     [](const Tensors& g) {
       const at::Tensor x = g[0] + g[2];
       const at::Tensor loss = at::mse_loss(x, x);
       if (!reads(x)) return Tensors{loss};
       const at::Tensor unused = loss + x;
       x.cumsum_(1);
       return Tensors{g[1] * 3, x};
     }},
    {"expand_as() and the like of what requires grad",
     [](const Tensors& g) {
       const at::Tensor a = g[2][0].expand_as(g[0]), b = g[2].view_as(g[0]), c = g[2].reshape_as(g[0]);
       const at::Tensor d = g[2].type_as(g[0]), e = g[2].to(g[0].to(at::kFloat));
       if (reads(g[0])) return Tensors{a, b, c, d, e, g[1] * 2};
       return Tensors{a};
     }},
    {"comparisons into a tensor of numbers",
     [](const Tensors& g) {
       at::Tensor a = at::empty_like(g[2]), b = g[2] * 2;
       at::gt_out(a, g[0].detach(), g[2]);
       b.logical_and_(g[1]);
       if (reads(g[0])) return Tensors{a, b, g[1] * 2};
       return Tensors{a};
     }},
    {"losses of which only the target requires grad",
     [](const Tensors& g) {
       const at::Tensor a = at::hinge_embedding_loss(g[2], g[0].sign());
       const at::Tensor b = at::cosine_embedding_loss(g[2], g[2] * 2, g[0].sum(1).sign());
       const at::Tensor c = at::margin_ranking_loss(g[2], g[2] * 2, g[0].sign());  // this one has a history
       if (reads(g[0])) return Tensors{a.requires_grad() ? a : a * 2, b.requires_grad() ? b : b * 2, c, g[1] * 2};
       return Tensors{a};
     }},
    {"statistics beside a normalised result",
     [](const Tensors& g) {
       const auto [x, mean, scale] = at::native_layer_norm(g[0], {4}, {}, {}, 1e-5);
       if (reads(g[0])) return Tensors{x, mean, scale};
       return Tensors{x};
     }},
};

TEST(Histories, LikeEager) {
  for (const Program& program : kPrograms) {
    for (const char* const backend : {"aot_eager", "eager"}) {
      auto compiled = rehearse::compile(program.run, {.backend = backend});
      for (int call = 0; call < 3; ++call) {
        at::manual_seed(7 + static_cast<std::uint64_t>(call));
        const Tensors given = {at::randn({4, 4}).requires_grad_(), at::randn({4, 4}).requires_grad_(),
                               at::randn({4, 4})};
        const std::string what = std::string(program.name) + " by " + backend;
        try {
          expect_same(observe(compiled, given), observe(program.run, given), what);
        } catch (const std::exception& error) {
          ADD_FAILURE() << what << ": " << std::string(error.what()).substr(0, 300);
        }
      }
      EXPECT_EQ(compiled.stats().eager_calls, 0) << program.name << "\n" << compiled.explain().text();
    }
  }
}

// Grad mode is off when the caller calls the function.
TEST(Histories, OfCodeThatSwitchesGradientsOn) {
  const at::Tensor weight = at::ones({3}).requires_grad_();
  const std::pair<const char*, Tensors (*)(const at::Tensor& x, const at::Tensor& weight)> functions[] = {
      {"all of it",
       [](const at::Tensor& x, const at::Tensor& weight) {
         const at::AutoGradMode on(true);
         return Tensors{x * weight};
       }},
      {"a part",
       [](const at::Tensor& x, const at::Tensor& weight) {
         const at::Tensor y = x * weight;
         const at::AutoGradMode on(true);
         return Tensors{y, y * weight};
       }},
      {"behind a read",
       [](const at::Tensor& x, const at::Tensor& weight) {
         const at::AutoGradMode on(true);
         const at::Tensor y = x * weight;
         return reads(x) ? Tensors{y, y * weight} : Tensors{y};
       }},
  };
  for (const auto& [name, function] : functions) {
    SCOPED_TRACE(name);
    auto compiled = rehearse::compile(function);
    const auto gradient_by = [&](auto&& f) {
      Tensors results;
      {
        const at::NoGradGuard no_grad;
        results = f(at::full({3}, 2.0), weight);
      }
      at::Tensor sum = weight.sum();
      for (const at::Tensor& result : results) sum = sum + result.sum();
      return torch::autograd::grad({sum}, {weight})[0];
    };
    for (int call = 0; call < 3; ++call) EXPECT_THAT(gradient_by(compiled), BitEqual(gradient_by(function)));
  }
}

// The code makes the view before it changes the base. After the read it writes to the view. This must change the
// history of the base, too.
TEST(Histories, AreLostThroughAViewBehindARead) {
  const auto function = [](const at::Tensor& x) {
    at::Tensor y = x * 2;
    const at::Tensor view = y.unsqueeze(1);
    y.sub_(1.5);
    if (reads(x)) view.zero_();
    return y;
  };
  auto compiled = rehearse::compile(function);
  const auto gradient_by = [](auto&& f) {
    const at::Tensor x = at::ones({4}).requires_grad_();
    f(x).sum().backward();
    return x.grad();
  };
  for (int call = 0; call < 2; ++call) EXPECT_THAT(gradient_by(compiled), BitEqual(gradient_by(function)));
}

class Counting final : public torch::autograd::FunctionPostHook {
 public:
  explicit Counting(int& called) : called_(called) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list& /*inputs*/) override {
    ++called_;
    return outputs;
  }

 private:
  int& called_;
};

// Hooks of leaves, such as those of DistributedDataParallel, run in a backward only if eager mode runs them.
TEST(Histories, HooksOfWhatGivesNoGradient) {
  const auto forward = [](const at::Tensor& x, const at::Tensor& leaf, const at::Tensor& detached) {
    x.zero_();
    {
      const at::NoGradGuard no_grad;
      leaf.add_(1);
    }
    return Tensors{leaf, x * detached.detach()};
  };
  auto compiled = rehearse::compile(forward);
  const auto hooks_in = [](const auto& function) {
    int called = 0;
    const at::Tensor origin = at::ones({3}).requires_grad_();
    const Tensors leaves = {at::ones({3}).requires_grad_(), at::ones({3}).requires_grad_()};
    std::vector<rehearse::libtorch::NodePtr> accumulators;  // a leaf does not keep its accumulator alive
    for (const at::Tensor& leaf : leaves) {
      accumulators.push_back(torch::autograd::impl::grad_accumulator(leaf));
      accumulators.back()->add_post_hook(std::make_unique<Counting>(called));
    }
    const at::Tensor x = origin * 2;
    const at::Tensor first = leaves[0], second = leaves[1];
    const Tensors results = function(x, first, second);
    torch::autograd::backward({results[1].sum(), x.sum()});
    return called;
  };
  EXPECT_EQ(hooks_in(forward), 0);
  EXPECT_EQ(hooks_in([&](const at::Tensor& x, const at::Tensor& y, const at::Tensor& z) { return compiled(x, y, z); }),
            0);
}

// An argument or a captured tensor gets a history after a read. The first entry serves tensors without a history. A
// tensor that has a history from the start needs another entry, and gradients flow into this history.
TEST(Histories, ArgumentsThatGetOneBehindARead) {
  const at::Tensor leaf = at::full({3}, 2.0).requires_grad_();
  for (const bool is_argument : {true, false}) {
    at::Tensor found;
    const auto function = [&](const at::Tensor& given, const at::Tensor& other) {
      const at::Tensor& x = is_argument ? given : found;
      const at::Tensor y = x * other;
      at::Tensor part = x.slice(0, 0, 2);
      if (reads(y)) part.copy_(leaf.slice(0, 1, 3) * 3);
      return y.slice(0, 0, 2) + part;
    };
    auto compiled = rehearse::compile(function);
    const auto gradient_of = [&](auto& called, bool has_history) {
      found = has_history ? leaf * 5 : at::ones({3});
      const at::Tensor result = called(found, at::full({3}, 7.0));
      return torch::autograd::grad({result.sum()}, {leaf}).front();
    };
    for (const bool has_history : {false, false, true, true, false}) {
      EXPECT_THAT(gradient_of(compiled, has_history), BitEqual(gradient_of(function, has_history))) << has_history;
    }
    // A tensor that the code has from elsewhere must be the same one in each call.
    EXPECT_EQ(compiled.stats().compiles, is_argument ? 2 : 5) << compiled.explain().text();
    EXPECT_EQ(compiled.stats().eager_calls, 0);
  }
}

TEST(Histories, BuffersThatGetOneBehindARead) {
  const at::Tensor leaf = at::full({}, 2.0).requires_grad_();
  at::Tensor buffer = at::ones({4});
  const auto function = [&](const at::Tensor& x) {
    at::Tensor half = buffer.slice(0, 0, 4, 2);
    if (reads(x)) half.copy_(leaf);
    return half * x;
  };
  auto compiled = rehearse::compile(function);
  for (int call = 0; call < 4; ++call) {
    const at::Tensor result = compiled(at::ones({2}));
    EXPECT_THAT(torch::autograd::grad({result.sum()}, {leaf}, {}, true).front(), BitEqual(at::full({}, 2.0))) << call;
    EXPECT_TRUE(buffer.requires_grad());
  }
  EXPECT_EQ(compiled.stats().compiles, 2);  // the buffer has a history from the second call on
}

// In all functions but the last, the result is a value that the backward needs, or a view of such a value. If the
// caller changes such a result in place before the backward, the backward throws, as in eager mode.
TEST(Histories, OfResultsThatTheCallerChanges) {
  using Function = at::Tensor (*)(const at::Tensor& x);
  const Function functions[] = {
      [](const at::Tensor& x) { return x.exp(); },
      [](const at::Tensor& x) { return x.exp().t(); },
      [](const at::Tensor& x) { return x.exp().slice(0, 0, 1); },
      [](const at::Tensor& x) { return x.exp().reshape({-1}); },
      [](const at::Tensor& x) { return at::stack({x, x}).exp().select(0, 1); },
      [](const at::Tensor& x) { return (x * 3).t(); },  // the backward does not need this value
  };
  for (const Function& function : functions) {
    auto compiled = rehearse::compile(function);
    const auto gradient_of = [&](const auto& called) {
      const at::Tensor x = (at::arange(9, at::kDouble) / 8).view({3, 3}).requires_grad_();
      try {
        const at::Tensor result = called(x);
        result.mul_(2);
        return std::to_string(torch::autograd::grad({result.sum()}, {x}).front().sum().template item<double>());
      } catch (const c10::Error& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("modified by an inplace operation"));
        return std::string("an error");
      }
    };
    for (int call = 0; call < 2; ++call) {
      EXPECT_EQ(gradient_of([&](const at::Tensor& x) { return compiled(x); }), gradient_of(function))
          << &function - functions;
    }
  }
}

// Even without gradients, a result must not be a view of a tensor that only the graph has. If `makes_leaf` is true, the
// function also makes a leaf, and its second result requires a gradient.
TEST(Histories, ResultsThatAreNoViewsCanBeDetached) {
  for (const bool makes_leaf : {false, true}) {
    const auto function = [=](const at::Tensor& x) {
      const at::Tensor sine = makes_leaf ? (x * 2).detach().requires_grad_().sin() : x;
      at::Tensor pair = at::stack({x, x});
      if (reads(x)) pair.detach_();
      return std::vector<at::Tensor>{pair, sine};
    };
    auto compiled = rehearse::compile(function);
    for (int call = 0; call < 2; ++call) {
      const at::Tensor result = compiled(at::ones({3})).front();
      EXPECT_THAT(result, BitEqual(at::ones({2, 3})));
      EXPECT_FALSE(result.is_view()) << makes_leaf;
      result.detach_();
    }
  }
}

// The function adds to a buffer, in place, a tensor that requires a gradient. From then on the buffer has a history,
// and the code may ask about it.
TEST(Histories, OfBuffersAreSeenByTheCodeThatGivesThem) {
  for (const bool is_asked_for_leaf : {false, true}) {
    const at::Tensor leaf = at::full({}, 2.0).requires_grad_();
    const auto function = [&](at::Tensor& buffer, const at::Tensor& x) {
      const bool before = buffer.requires_grad();
      buffer.add_(leaf);
      const bool has_begun = is_asked_for_leaf ? !buffer.is_leaf() : buffer.requires_grad();
      return has_begun && !before ? x * 3 : x;
    };
    at::Tensor mine = at::ones({4}), twin = at::ones({4});
    auto compiled = rehearse::compile([&](const at::Tensor& x) { return function(mine, x); });
    for (int call = 0; call < 3; ++call) {
      EXPECT_THAT(compiled(at::ones({2})), BitEqual(function(twin, at::ones({2})))) << is_asked_for_leaf << call;
      EXPECT_EQ(mine.requires_grad(), twin.requires_grad());
      mine = mine.detach();
      twin = twin.detach();
    }
  }
}

// The number of dimensions depends on whether a number from data is 1.
TEST(Histories, OfAViewThatIsSqueezedByANumberFromData) {
  const auto function = [](const at::Tensor& x) {
    at::Tensor rows = x.narrow_symint(0, 0, rehearse::sym_item(x.sum().sign().to(at::kLong)));
    rows.squeeze_();
    return reads(x.abs()) ? rows : rows * 2;
  };
  auto compiled = rehearse::compile(function);
  for (int call = 0; call < 2; ++call) {
    const at::Tensor x = at::ones({3, 4}, at::kDouble).requires_grad_() * 1;
    EXPECT_THAT(compiled(x), BitEqual(function(x)));
  }
}

}  // namespace
}  // namespace rehearse_test
