// SPDX-License-Identifier: BSD-3-Clause
// Code after a refusal, with or without a read before it. The rest of the call runs in eager mode, on the caller's
// arguments. If that is impossible, the call throws, and later calls run in eager mode.
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/eager_region.h>
#include <rehearse/compile/errors.h>
#include <rehearse/parallel/checkpoint.h>
#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_errors.h>

#include "bit_equal.h"

namespace rehearse::compiler::refused {
namespace {

using rehearse::test::BitEqual;
using testing::HasSubstr;

TEST(BehindARefusal, TheCallersArgumentIsChanged) {
  const auto function = [](const at::Tensor& x, const at::Tensor& y) {
    const bool positive = (y.sum() > 0).item<bool>();
    x.requires_grad_(positive);
    const bool has_gradient = x.grad().defined();
    return x.is_leaf() && !has_gradient ? y * 2 : y * 3;
  };
  auto compiled = compile(function);
  for (const double value : {1.0, -1.0, 1.0}) {
    const at::Tensor mine = at::ones({2}), eagers = at::ones({2}), y = at::full({2}, value);
    mine.mutable_grad() = eagers.mutable_grad() = value > 0 ? at::zeros({2}) : at::Tensor();
    EXPECT_THAT(compiled(mine, y), BitEqual(function(eagers, y)));
    EXPECT_EQ(mine.requires_grad(), eagers.requires_grad());
  }
}

// After a read, the code asks whether a tensor is a view. The graph before the read returns a plain tensor, not a view,
// so the first call cannot answer the question and throws. Later calls run in eager mode.
TEST(BehindARefusal, QuestionsBehindARead) {
  using Question = bool (*)(const at::Tensor& rows);
  for (const Question question : {Question([](const at::Tensor& rows) { return rows.is_view(); }),
                                  Question([](const at::Tensor& rows) { return rows._base().dim() == 3; })}) {
    for (const bool is_caught : {false, true}) {
      const auto function = [=](const at::Tensor& x) {
        const at::Tensor rows = x.unsqueeze(0).repeat_interleave(2, 0);
        const at::Tensor scaled = x.sum().item<float>() > 0 ? rows * 2 : rows;
        if (!is_caught) return question(rows) ? scaled : scaled + 1;
        try {
          return question(rows) ? scaled : scaled + 1;
        } catch (const std::exception&) {
          return scaled * 3;
        }
      };
      auto compiled = compile(function);
      const at::Tensor x = at::ones({3}).requires_grad_();
      EXPECT_THROW(compiled(x), capture::NotCapturable);
      for (int call = 0; call < 2; ++call) EXPECT_THAT(compiled(x), BitEqual(function(x)));
    }
  }
}

TEST(BehindARefusal, QuestionsBehindAReadAndARefusal) {
  const auto function = [](const at::Tensor& x) {
    const at::Tensor rows = x.unsqueeze(0).repeat_interleave(2, 0);
    const at::Tensor scaled = x.sum().item<float>() > 0 ? rows * 2 : rows;
    const at::Tensor copy = x.clone();
    copy.detach_();
    return copy.is_leaf() && scaled.is_view() ? scaled : rows.is_view() ? scaled + copy : scaled - copy;
  };
  auto compiled = compile(function);
  const at::Tensor x = at::ones({3});
  EXPECT_THROW(compiled(x), capture::NotCapturable);
  EXPECT_THAT(compiled(x), BitEqual(function(x)));
}

// The code of a checkpoint registers a hook on its input, which no graph can hold. Behind a read it does so in each
// call.
TEST(BehindARefusal, HooksOnTheInputOfACheckpoint) {
  for (const bool reads : {false, true}) {
    const auto function = [reads](const at::Tensor& x, const at::Tensor& w) {
      const auto code = [w, reads](const at::Tensor& h) {
        const double factor = reads ? w.sum().item<double>() : 3;
        h.register_hook([](const at::Tensor& gradient) { return gradient * 2; });
        return h * w * factor;
      };
      return (checkpoint(code, x) + x * 5).sum();
    };
    auto compiled = compile(function);
    for (const bool is_leaf : {true, false, true}) {
      const at::Tensor w = at::full({2}, 4.0), mine = at::ones({2}).requires_grad_(),
                       eagers = at::ones({2}).requires_grad_();
      compiled(is_leaf ? mine : mine * 1, w).backward();
      function(is_leaf ? eagers : eagers * 1, w).backward();
      EXPECT_THAT(mine.grad(), BitEqual(eagers.grad())) << reads << is_leaf;
    }
  }
}

// If an index is a tensor of one integer, LibTorch takes the sizes of the indexed tensor `y`, reads the integer, and
// then uses the sizes. The sizes must stay valid although the read makes `y` a real tensor.
TEST(BehindARefusal, SizesOfWhatIsIndexedByANumberFromData) {
  const auto function = [](const at::Tensor& x) {
    at::Tensor y = at::cat({x, x}, 1);
    for (const at::Tensor& row : x.unbind(0)) {
      y.index_put_({(row > 0).sum()}, at::scalar_tensor(2, at::kDouble));
      x.set_data(x.detach() * 2);
    }
    return y;
  };
  auto compiled = compile(function, {.dynamic = true});
  for (const std::int64_t columns : {2, 3, 2}) {
    const auto argument = [&] { return at::ones({columns + 1, columns}, at::kDouble); };
    EXPECT_THAT(compiled(argument()), BitEqual(function(argument())));
  }
}

TEST(BehindARefusal, AHistoryIsGone) {
  const auto function = [](const at::Tensor& x) {
    x.detach_();
    return x.requires_grad() ? x * 2 : x * 3;
  };
  auto compiled = compile(function);
  for (int call = 0; call < 2; ++call) {
    EXPECT_THAT(compiled(at::ones({2}).requires_grad_()), BitEqual(function(at::ones({2}).requires_grad_())));
  }
}

TEST(BehindARefusal, AHistoryComesThroughAView) {
  const auto function = [](const at::Tensor& x, const at::Tensor& leaf) {
    x.detach_();
    x.select(0, 1).add_(leaf);
    return x.requires_grad() ? x * 2 : x * 3;
  };
  auto compiled = compile(function);
  for (int call = 0; call < 2; ++call) {
    const at::Tensor leaf = at::ones({}).requires_grad_();
    EXPECT_THAT(compiled(at::ones({2}), leaf), BitEqual(function(at::ones({2}), leaf)));
  }
}

// After x.mul_(), eager mode would refuse operators on the parts of `x`. The code calls none.
TEST(BehindARefusal, PartsOfWhatIsChanged) {
  const auto function = [](const at::Tensor& x, const at::Tensor& other) {
    for (const at::Tensor& part : x.unbind(0)) {
      EXPECT_EQ(part.dim(), 0);
      x.mul_(2);
      other.detach_();
    }
    return x.sum();
  };
  auto compiled = compile(function);
  for (int call = 0; call < 2; ++call) {
    const at::Tensor leaf = at::ones({3}).requires_grad_();
    compiled(leaf * 1, at::ones({2})).backward();
    EXPECT_THAT(leaf.grad(), BitEqual(at::full({3}, 8.0)));
  }
}

TEST(BehindARefusal, ARegionOfAViewWithAHistory) {
  const auto function = [](const at::Tensor& x) {
    const at::Tensor y = eager_region([](const at::Tensor& given) { return given * 2; }, x);
    try {
      return y * x.detach()[0].data_ptr<float>()[0];
    } catch (const std::exception&) {
      return y + x;
    }
  };
  auto compiled = compile(function);
  for (int call = 0; call < 2; ++call) {
    const at::Tensor x = (at::ones({2, 3}).requires_grad_() * 3)[1];
    EXPECT_THAT(compiled(x), BitEqual(function(x)));
  }
  EXPECT_THAT(compiled.explain().refusal, HasSubstr("memory"));
}

// After the function has written to an argument, the argument and all tensors that share its memory have a history.
TEST(BehindARefusal, ArgumentsGetHistories) {
  const auto function = [](const at::Tensor& x, const at::Tensor& y, const at::Tensor& view, const at::Tensor& leaf) {
    x.requires_grad_();
    y.sub_(leaf, 0.5);
    return std::vector<at::Tensor>{y, view, y * 2};
  };
  const auto gradient_of = [](auto& called) {
    const at::Tensor x = at::ones({2}), y = at::ones({2}), leaf = at::ones({2}).requires_grad_();
    const at::Tensor view = y.view({2});
    at::Tensor sum = at::zeros({});
    for (const at::Tensor& each : called(x, y, view, leaf)) {
      EXPECT_TRUE(each.requires_grad());
      sum = sum + each.sum();
    }
    sum.backward();
    return leaf.grad().clone();
  };
  auto compiled = compile(function);
  for (int call = 0; call < 2; ++call) EXPECT_THAT(gradient_of(compiled), BitEqual(gradient_of(function)));
}

template <class Function>
bool has_memory(Function&& function) {
  try {
    function();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// After a refusal, the code still sees fakes of its arguments, which have the memory of the real arguments.
TEST(BehindARefusal, MemoryBehindTheEndOfACapture) {
  const auto function = [](const at::Tensor& x) {
    const bool positive = (x.sum() > 0).item<bool>();
    const at::Tensor y = positive ? x * 2 : x;
    y.detach().detach_();
    x.mul_(3);
    return has_memory([&] { return x.data_ptr<float>()[0]; }) ? y * x.data_ptr<float>()[1] : y * 5;
  };
  const at::Tensor both = at::arange(2, 8, at::kFloat);
  for (const bool dynamic : {false, true}) {
    for (const at::Tensor& x : {at::ones({2}), both.narrow(0, 3, 2)}) {
      const at::Tensor twin = x.clone();
      EXPECT_THAT(compile(function, {.dynamic = dynamic})(x), BitEqual(function(twin)));
      EXPECT_THAT(x, BitEqual(twin));
    }
  }
}

// x.contiguous() is x itself, so no new tensor can take the place of its fake.
TEST(BehindARefusal, MemoryBehindAVersion) {
  const auto function = [](const at::Tensor& x) {
    const at::Tensor same = x.contiguous(), row = x[1], half = x.narrow_symint(0, 0, x.sym_size(0) / 2);
    if (x._version() > 7) return x;
    at::Tensor sum = x.sum();
    for (const at::Tensor& each : {x, same, row, half}) {
      if (has_memory([&] { return each.data_ptr<float>()[0]; })) sum = sum * 2 + each.data_ptr<float>()[0];
    }
    return sum + same.size(0) * same.stride(0) + static_cast<double>(half.numel());
  };
  for (const bool dynamic : {false, true}) {
    auto compiled = compile(function, {.dynamic = dynamic});
    for (const int rows : {4, 6, 4}) {
      const at::Tensor x = at::arange(5.0 * rows, at::kFloat).view({rows, 5});
      EXPECT_THAT(compiled(x), BitEqual(function(x))) << rows;
    }
  }
}

// The checkpoint's backward runs the code again after the call, and its capture, have ended.
TEST(BehindARefusal, ACheckpointRunsAgainWithWhatItsCodeHolds) {
  const auto function = [](const at::Tensor& x, const at::Tensor& weight) {
    const at::Tensor inside = x * 3;
    const at::Tensor y = weight.is_view() ? x : x * 2;
    return checkpoint([=](const at::Tensor& input) { return input * x + inside.sin() * weight.size(0); }, y) * weight;
  };
  const auto expect_like_eager = [&](bool x_is_leaf) {
    const at::Tensor weight = at::rand({3}, at::kDouble).requires_grad_(), start = at::rand({3}, at::kDouble);
    auto compiled = compile(function);
    const auto gradients = [&](auto& forward) {
      const at::Tensor leaf = start.clone().requires_grad_();
      forward(x_is_leaf ? leaf : leaf * 2, weight).sum().backward();
      return std::pair(leaf.grad(), std::exchange(weight.mutable_grad(), at::Tensor()));
    };
    const auto eager = gradients(function);
    for (int call = 0; call < 2; ++call) {
      const auto mine = gradients(compiled);
      EXPECT_THAT(mine.first, BitEqual(eager.first)) << x_is_leaf << call;
      EXPECT_THAT(mine.second, BitEqual(eager.second)) << x_is_leaf << call;
    }
    EXPECT_THAT(compiled.explain().refusal, HasSubstr("is_view() is asked of a tensor"));
  };
  expect_like_eager(true);
  expect_like_eager(false);
}

// The first part of the call has run, and has changed the argument's sizes, before the rest is refused. So the code
// cannot run again from its start.
TEST(BehindARefusal, AnArgumentThatChangedItsSizes_EndsTheCall) {
  const auto function = [](const at::Tensor& x) {
    x.unsqueeze_(0);
    const bool positive = (x.sum() > 0).item<bool>();
    at::Tensor y = x.detach().clone();
    y.set_data(x.detach());
    return positive ? y * 2 : y * 3;
  };
  auto compiled = compile(function);
  try {
    compiled(at::ones({3, 5}));
    ADD_FAILURE() << "no error";
  } catch (const CompileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("changes the sizes of an argument before it reads data"));
  }
  EXPECT_THAT(compiled.explain().refusal, HasSubstr("set_data"));  // the call that no graph can hold
  for (int call = 0; call < 2; ++call) {
    EXPECT_THAT(compiled(at::ones({3, 5})), BitEqual(function(at::ones({3, 5}))));
  }
}

// The second call needs a branch that was not compiled.
TEST(BehindARefusal, AnArgumentThatChangedItsSizes_MayTakeAnotherBranch) {
  const auto function = [](const at::Tensor& x) {
    x.unsqueeze_(0);
    return (x.sum() > 0).item<bool>() ? x * 2 : x * 3;
  };
  auto compiled = compile(function);
  EXPECT_THAT(compiled(at::ones({3, 5})), BitEqual(function(at::ones({3, 5}))));
  const at::Tensor negative = at::full({3, 5}, -1.0);
  for (int call = 0; call < 2; ++call) {
    EXPECT_THAT(compiled(negative.clone()), BitEqual(function(negative.clone())));
    EXPECT_THAT(compiled(at::ones({3, 5})), BitEqual(function(at::ones({3, 5}))));
  }
}

}  // namespace
}  // namespace rehearse::compiler::refused
