// SPDX-License-Identifier: BSD-3-Clause
// Contract: results and gradients have the same bits with and without a checkpoint. Code that cannot run twice is an
// error.
#include <rehearse/parallel/checkpoint.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/autograd/function.h>
#include <torch/nn/functional/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <rehearse_internal/libtorch/nodes.h>

#include "bit_equal.h"

namespace rehearse {
namespace {

using rehearse::test::BitEqual;
using ::testing::HasSubstr;

at::Tensor leaf(at::IntArrayRef sizes, std::uint64_t seed) {
  torch::manual_seed(seed);
  return at::randn(sizes).requires_grad_();
}

// Calls code with inputs: through checkpoint(), or directly.
using Wrap = std::function<std::vector<at::Tensor>(
    const std::function<std::vector<at::Tensor>(std::vector<at::Tensor>)>&, std::vector<at::Tensor>)>;
using Step = std::function<at::Tensor(const Wrap& wrap, const std::vector<at::Tensor>& leaves)>;

std::vector<at::Tensor> run(const Step& step, const Wrap& wrap, const std::vector<at::Tensor>& leaves) {
  std::vector<at::Tensor> own;
  for (const at::Tensor& each : leaves) own.push_back(each.detach().clone().requires_grad_(each.requires_grad()));
  torch::manual_seed(11);
  const at::Tensor loss = step(wrap, own);
  loss.backward();
  std::vector<at::Tensor> found = {loss.detach(), at::rand({4})};
  for (const at::Tensor& each : own) found.push_back(each.grad());
  return found;
}

// Expects that `step` has the same results, gradients and generator state with a checkpoint and without one.
void expect_like_without(const Step& step, const std::vector<at::Tensor>& leaves) {
  const auto plain =
      run(step, [](const auto& code, std::vector<at::Tensor> inputs) { return code(std::move(inputs)); }, leaves);
  const auto saved = run(
      step, [](const auto& code, std::vector<at::Tensor> inputs) { return checkpoint(code, std::move(inputs)); },
      leaves);
  EXPECT_THAT(saved, BitEqual(plain));
}

template <class Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const CheckpointError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no CheckpointError";
  return "";
}

TEST(Checkpoint, InputsAndParameters_GetTheSameGradients) {
  for (const std::int64_t rows : {0, 1, 3, 17}) {
    expect_like_without(
        [](const Wrap& wrap, const std::vector<at::Tensor>& leaves) {
          const at::Tensor h = leaves[0].tanh();
          const auto code = [&](const std::vector<at::Tensor>& in) {
            return std::vector<at::Tensor>{at::relu(in[0].matmul(leaves[1])).matmul(leaves[2]) + in[0]};
          };
          return wrap(code, {h})[0].sin().sum();
        },
        {leaf({rows, 5}, 1), leaf({5, 7}, 2), leaf({7, 5}, 3)});
  }
}

TEST(Checkpoint, Dropout_DrawsTheSameValuesAgain) {
  expect_like_without(
      [](const Wrap& wrap, const std::vector<at::Tensor>& leaves) {
        at::Tensor h = leaves[0] * 1;
        for (int layer = 0; layer < 3; ++layer) {
          h = wrap(
              [&](const std::vector<at::Tensor>& in) {
                return std::vector<at::Tensor>{at::dropout(in[0].matmul(leaves[1]), 0.5, true)};
              },
              {h})[0];
          h = at::dropout(h, 0.1, true);
        }
        return h.square().sum();
      },
      {leaf({6, 5}, 1), leaf({5, 5}, 2)});
}

// The checkpoint's code and the code after it use `scale` and leaves[2], which are neither inputs nor parameters of a
// module. One input is passed twice, and one is returned unchanged.
TEST(Checkpoint, WhatIsNoInput_GetsItsGradient) {
  expect_like_without(
      [](const Wrap& wrap, const std::vector<at::Tensor>& leaves) {
        const at::Tensor scale = leaves[1].exp();
        const at::Tensor x = leaves[0] * 2;
        const auto results = wrap(
            [&leaves, scale](const std::vector<at::Tensor>& in) {
              return std::vector<at::Tensor>{in[0] * scale + in[1] * leaves[2], in[0].detach(), in[2]};
            },
            {x, x, leaves[3]});
        return (results[0] * scale * leaves[2]).sum() + results[1].sum() + x.sum();
      },
      // The gradients that are added up are small integers, so their sums are exact in any order.
      {(leaf({4, 3}, 1) * 16).detach().round().requires_grad_(), at::zeros({3}).requires_grad_(),
       at::ones({4, 3}).requires_grad_(), leaf({2}, 4)});
}

TEST(Checkpoint, ResultsWithoutGradient_CountAsZero) {
  expect_like_without(
      [](const Wrap& wrap, const std::vector<at::Tensor>& leaves) {
        const auto results = wrap(
            [&](const std::vector<at::Tensor>& in) {
              const auto parts = in[0].split(2);
              return std::vector<at::Tensor>{parts[0] * leaves[1], parts[1].exp(), in[0].argmax(), at::Tensor()};
            },
            {leaves[0]});
        return results[1].sum() * results[2];
      },
      {leaf({4}, 1), leaf({2}, 2)});
}

TEST(Checkpoint, ViewsThatAreFilled_AreFollowed) {
  expect_like_without(
      [](const Wrap& wrap, const std::vector<at::Tensor>& leaves) {
        const auto code = [&](const std::vector<at::Tensor>& in) {
          at::Tensor filled = at::zeros({4, 3});
          for (std::int64_t i = 0; i < 4; ++i) filled[i] = in[0][i] * leaves[1];
          filled.slice(0, 1, 3).mul_(leaves[1]);
          return std::vector<at::Tensor>{filled, filled.t()};
        };
        const auto results = wrap(code, {leaves[0].sigmoid()});
        return results[0].square().sum() + results[1].sum();
      },
      {leaf({4, 3}, 1), leaf({3}, 2)});
}

// If the base of a view has changed, LibTorch gives the view a new autograd node at its next use, here in the
// checkpoint's code. The code did not make the view, so the checkpoint must accept that the view keeps the new node.
TEST(Checkpoint, ViewsWhoseBaseHasChanged_AreOlderThanTheCode) {
  for (const bool returns_the_view : {false, true}) {
    for (const bool is_used_outside : {false, true}) {
      SCOPED_TRACE(testing::Message() << returns_the_view << is_used_outside);
      expect_like_without(
          [&](const Wrap& wrap, const std::vector<at::Tensor>& leaves) {
            const at::Tensor base = leaves[0] * 2;
            const at::Tensor view = base.slice(0, 1, 3), unused = base[0];
            base.mul_(leaves[1]);
            const auto code = [&, view, unused](const std::vector<at::Tensor>& in) {
              if (returns_the_view) return std::vector<at::Tensor>{view, in[0].sin()};
              return std::vector<at::Tensor>{view * in[0] + unused, view.select(0, 1) * leaves[1]};
            };
            const auto results = wrap(code, {leaves[2]});
            const at::Tensor loss = results[0].sum() + results[1].sum();
            return is_used_outside ? loss + view.square().sum() + base.sum() : loss;
          },
          // The gradients that are added up are small integers, so their sums are exact in any order.
          {(leaf({4, 3}, 1) * 16).detach().round().requires_grad_(), at::full({3}, 2.0).requires_grad_(),
           at::full({2, 3}, 4.0).requires_grad_()});
    }
  }
}

// Nests `depth` checkpoints in another one. Objects to which a checkpoint refers must live until the backward.
at::Tensor nested(const Wrap& wrap, const at::Tensor& weight, const at::Tensor& x, int depth) {
  const auto code = [&wrap, weight, depth](const std::vector<at::Tensor>& in) {
    const at::Tensor h = at::dropout(in[0].matmul(weight), 0.3, true);
    return std::vector<at::Tensor>{depth == 0 ? h : nested(wrap, weight, h, depth - 1).tanh()};
  };
  return wrap(code, {x})[0];
}

// A view that is made without grad mode says that it requires a gradient, but no gradient reaches its base.
TEST(Checkpoint, ViewsWithoutGradMode_JustComeThrough) {
  const at::Tensor x = leaf({3, 4}, 1);
  std::vector<at::Tensor> rows;
  {
    const at::NoGradGuard no_grad;
    rows = x.chunk(2, 0);
  }
  const auto [view, sine] = checkpoint([row = rows[0]](const at::Tensor& h) { return std::pair(row, h.sin()); }, x);
  EXPECT_THAT(view, BitEqual(rows[0]));
  sine.sum().backward();
  EXPECT_THAT(x.grad(), BitEqual(x.cos()));
}

TEST(Checkpoint, InCheckpoints_AreRunAgainInTheirTurn) {
  expect_like_without([](const Wrap& wrap,
                         const std::vector<at::Tensor>& leaves) { return nested(wrap, leaves[1], leaves[0], 3).sum(); },
                      {leaf({3, 4}, 1), leaf({4, 4}, 2)});
}

TEST(Checkpoint, HooksOfTensors_AreCalledOnce) {
  int calls = 0;
  expect_like_without(
      [&](const Wrap& wrap, const std::vector<at::Tensor>& leaves) {
        for (const at::Tensor& each : leaves) {
          each.register_hook([&](const at::Tensor& gradient) {
            ++calls;
            return gradient * 3;
          });
        }
        const at::Tensor x = leaves[0] * 1;
        x.register_hook([](const at::Tensor& gradient) { return gradient + 1; });
        const auto code = [&](const std::vector<at::Tensor>& in) {
          in[0].register_hook([](const at::Tensor& gradient) { return gradient * 7; });
          const at::Tensor y = in[0] * leaves[1];
          if (y.requires_grad()) y.register_hook([](const at::Tensor& gradient) { return gradient * 5; });
          return std::vector<at::Tensor>{y.exp()};
        };
        return wrap(code, {x})[0].sum();
      },
      {leaf({3}, 1), leaf({3}, 2)});
  EXPECT_EQ(calls, 4);  // for each of two leaves, with and without a checkpoint
}

TEST(Checkpoint, Autocast_IsThatOfTheForward) {
  expect_like_without(
      [](const Wrap& wrap, const std::vector<at::Tensor>& leaves) {
        at::autocast::set_autocast_enabled(at::kCPU, true);
        at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
        const auto code = [&](const std::vector<at::Tensor>& in) {
          return std::vector<at::Tensor>{in[0].matmul(leaves[1]).relu().matmul(leaves[2])};
        };
        const at::Tensor before = leaves[0].matmul(leaves[3]);
        const at::Tensor y = wrap(code, {before})[0];
        const at::Tensor after = y.matmul(leaves[4]);
        at::autocast::set_autocast_enabled(at::kCPU, false);
        at::autocast::clear_cache();
        EXPECT_EQ(y.dtype(), at::kBFloat16);
        return after.to(at::kFloat).sum();
      },
      {leaf({3, 4}, 1), leaf({4, 4}, 2), leaf({4, 4}, 3), leaf({4, 4}, 4), leaf({4, 4}, 5)});
}

TEST(Checkpoint, OtherResultsAndArguments_ComeThrough) {
  const at::Tensor x = leaf({3}, 1);
  const auto [a, b] = checkpoint(
      [](const at::Tensor& t, double factor) { return std::tuple(t * factor, std::vector<at::Tensor>{t.exp()}); }, x,
      2.5);
  EXPECT_THAT(a, BitEqual(x * 2.5));
  EXPECT_THAT(b[0], BitEqual(x.exp()));
  (a.sum() + b[0].sum()).backward();
  EXPECT_THAT(x.grad(), BitEqual((x.exp() + 2.5).detach()));
}

TEST(Checkpoint, WithoutGradMode_JustRuns) {
  int runs = 0;
  const at::Tensor x = leaf({3}, 1);
  const auto code = [&](const at::Tensor& t) {
    ++runs;
    return t * 2;
  };
  {
    const at::NoGradGuard no_grad;
    EXPECT_EQ(checkpoint(code, x).grad_fn(), nullptr);
  }
  EXPECT_FALSE(checkpoint(code, x.detach()).requires_grad());
  EXPECT_EQ(runs, 2);
  const at::Tensor y = checkpoint(code, x);
  EXPECT_EQ(y.grad_fn()->name(), "CheckpointBackward");
  EXPECT_EQ(runs, 3);
  y.sum().backward();
  EXPECT_EQ(runs, 4);
}

// There is no generator for such tensors.
TEST(Checkpoint, InputsWithoutData_GetGradientsWithoutData) {
  const at::Tensor x = at::ones({3}, at::device(at::kMeta)).requires_grad_();
  checkpoint([](const at::Tensor& in) { return in * in; }, x).sum().backward();
  EXPECT_TRUE(x.grad().is_meta());
}

TEST(Checkpoint, GradientsOfSome_AreComputedForThemAlone) {
  const at::Tensor x = leaf({3}, 1), w = leaf({3}, 2);
  const at::Tensor y = checkpoint([&](const at::Tensor& t) { return (t * w).sin(); }, x).sum();
  const auto gradients = torch::autograd::grad({y}, {x}, {}, /*retain_graph=*/true);
  EXPECT_THAT(gradients[0], BitEqual(((x * w).cos() * w).detach()));
  EXPECT_FALSE(w.grad().defined());
  y.backward();
  EXPECT_THAT(w.grad(), BitEqual(((x * w).cos() * x).detach()));
  EXPECT_THROW(y.backward(), c10::Error);
}

TEST(Checkpoint, ErrorOfTheSecondRun_ComesToBackward) {
  const at::Tensor x = leaf({3}, 1);
  bool fails = false;
  const at::Tensor y = checkpoint(
      [&](const at::Tensor& t) {
        const at::Tensor noise = at::rand({3});
        if (fails) throw std::invalid_argument("out of luck");
        return t * noise;
      },
      x);
  fails = true;
  torch::manual_seed(5);
  EXPECT_THROW(y.sum().backward(), std::invalid_argument);
  const at::Tensor next = at::rand({2});
  torch::manual_seed(5);
  EXPECT_THAT(next, BitEqual(at::rand({2})));
}

TEST(Checkpoint, CodeThatCannotRunTwice_IsToldSo) {
  const at::Tensor x = leaf({3}, 1), w = leaf({3}, 2);
  const at::Tensor count = at::zeros({1});
  EXPECT_THAT(error_of([&] { checkpoint([](const at::Tensor& t, at::Tensor n) { return t * n.add_(1); }, x, count); }),
              HasSubstr("the code changes its input tensor 1 in place"));
  at::Tensor kept;
  EXPECT_THAT(error_of([&] { checkpoint([&](const at::Tensor& t) { return kept = t * 2; }, x); }),
              HasSubstr("the code keeps a tensor that it has made, with its history (MulBackward1)"));
  EXPECT_THAT(error_of([&] { checkpoint([&](const at::Tensor& t) { return kept = t.as_strided({2}, {1}); }, x); }),
              HasSubstr("the code keeps a tensor that it has made, with its history (AsStridedBackward0)"));
  const at::Tensor strided = checkpoint([&](const at::Tensor& t) { return t[0] * (kept = w.as_strided({2}, {1})); }, x);
  EXPECT_THAT(error_of([&] { strided.sum().backward(); }),
              HasSubstr("used other tensors that require grad than before"));
  int runs = 0;
  const at::Tensor other = checkpoint([&](const at::Tensor& t) { return ++runs == 1 ? t * w : t * 2; }, x);
  EXPECT_THAT(error_of([&] { other.sum().backward(); }),
              HasSubstr("used other tensors that require grad than before: nothing instead of "
                        "torch::autograd::AccumulateGrad of shape [3]"));
  runs = 0;
  const auto fewer = checkpoint(
      [&](const at::Tensor& t) { return std::vector<at::Tensor>(static_cast<std::size_t>(++runs), t * w); }, x);
  EXPECT_THAT(error_of([&] { fewer[0].sum().backward(); }),
              HasSubstr("the code returned 1 tensors, of which 1 require grad, but 2, of which 2 require grad"));
  const at::Tensor y = checkpoint([&](const at::Tensor& t) { return t * w; }, x);
  EXPECT_THAT(error_of([&] { torch::autograd::grad({y.sum()}, {x}, {}, true, /*create_graph=*/true); }),
              HasSubstr("its gradient cannot be differentiated again (create_graph)"));
}

// The code, its input and the nodes behind them go with the node's last owner, even if others still watch the node.
TEST(Checkpoint, NodeWithoutOwners_KeepsNothing) {
  at::Tensor input = leaf({3}, 1) * 2;
  auto of_code = std::make_shared<int>(3);
  at::Tensor y = checkpoint([of_code](const at::Tensor& t) { return t * *of_code; }, input);
  const libtorch::WeakNodePtr watched(y.grad_fn()), behind(input.grad_fn());
  const c10::weak_intrusive_ptr<c10::StorageImpl> saved(input.storage().getWeakStorageImpl());
  const std::weak_ptr<int> code(std::exchange(of_code, nullptr));
  input.reset();
  EXPECT_FALSE(saved.expired() || behind.expired() || code.expired());
  y.reset();
  EXPECT_TRUE(watched.expired());
  EXPECT_TRUE(saved.expired());
  EXPECT_TRUE(behind.expired());
  EXPECT_TRUE(code.expired());
}

TEST(Checkpoint, TangentsOfInputs_AreRefused) {
  const auto level = torch::autograd::ForwardADLevel::get_next_idx();
  at::Tensor dual = at::ones({3});
  dual._set_fw_grad(at::ones({3}), level, false);
  EXPECT_THAT(error_of([&] { checkpoint([](const at::Tensor& t) { return t * 2; }, dual); }),
              HasSubstr("its input tensor 0 has a tangent (forward-mode)"));
  torch::autograd::ForwardADLevel::release_idx(level);
}

}  // namespace
}  // namespace rehearse
