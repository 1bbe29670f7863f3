// SPDX-License-Identifier: BSD-3-Clause
// Contract: every module of torch::nn and every function of torch::nn::functional gives, compiled in float32, the
// results, gradients and buffers of eager mode: in training and in evaluation, with gradients and without.
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/pimpl.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"
#include "core/compile/like_eager/nn_programs.h"

namespace rehearse_test {
namespace {

using rehearse::test::BitEqual;

// On a busy machine, waiting for LibTorch's other threads takes longer than these small calls.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(was_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int was_ = at::get_num_threads();
};

struct CalledImpl : torch::nn::Module {
  explicit CalledImpl(NnCall made) : call(std::move(made)) {
    if (call.module) register_module("module", call.module);
  }
  Tensors forward(const Tensors& inputs) { return call.run(inputs); }

  NnCall call;
};
TORCH_MODULE(Called);

struct Setting {
  bool trains, grad;
};
constexpr Setting kSettings[] = {{true, true}, {true, false}, {false, true}, {false, false}};

Called made_by(const NnProgram& program, bool trains) {
  at::manual_seed(17);
  Called net(program.make());
  net->train(trains);
  return net;
}

// Calls the program twice, because the cache serves the second call. Returns why compile() refused it.
std::string expect_like_eager(const NnProgram& program, const Setting& setting) {
  Called mine = made_by(program, setting.trains), twin = made_by(program, setting.trains);
  auto compiled = rehearse::compile(mine);
  const std::string what =
      std::string(program.name) + (setting.trains ? ", trains" : ", evaluates") + (setting.grad ? "" : ", no grad");
  const auto in_mode = [&](auto& net) {
    return [&net, &setting](const Tensors& inputs) {
      const at::AutoGradMode mode(setting.grad);
      return net(inputs);
    };
  };
  for (int call = 0; call < 2; ++call) {
    const Observed expected = observe(in_mode(twin), twin->call.inputs, twin->parameters());
    expect_same(observe(in_mode(compiled), mine->call.inputs, mine->parameters()), expected, what);
    const Tensors buffers = mine->buffers(), of_twin = twin->buffers();
    EXPECT_THAT(buffers, BitEqual(of_twin)) << what;
  }
  return compiled.explain().refusal;
}

class NnTest : public testing::TestWithParam<NnProgram> {};

TEST_P(NnTest, LikeEager) {
  const NnProgram& program = GetParam();
  const OneThread quick;
  const bool is_listed = !std::string_view(program.refusal).empty();
  bool is_refused = false;
  for (const Setting& setting : kSettings) {
    const std::string refusal = expect_like_eager(program, setting);
    if (refusal.empty()) continue;
    is_refused = true;
    EXPECT_TRUE(is_listed) << refusal;
    EXPECT_THAT(refusal, testing::HasSubstr(program.refusal));
  }
  EXPECT_EQ(is_refused, is_listed);
}

std::string name_of(const testing::TestParamInfo<NnProgram>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Modules, NnTest, testing::ValuesIn(nn_modules().begin(), nn_modules().end()), name_of);
INSTANTIATE_TEST_SUITE_P(Functions, NnTest, testing::ValuesIn(nn_functions().begin(), nn_functions().end()), name_of);

// LibTorch's attention compares its arguments by equal(). The result differs in bits only if it takes another branch.
TEST(Nn, AttentionTakesEagerModesBranch) {
  torch::nn::MultiheadAttention attention(8, 2);
  const auto forward = [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    return std::get<0>(attention->forward(q, k, v));
  };
  const at::Tensor x = at::randn({3, 2, 8}), y = at::randn({3, 2, 8});
  at::Tensor with_nan = x.clone();
  with_nan[0][0][0] = std::nan("");
  for (const rehearse::Verify verify : {rehearse::Verify::FirstHit, rehearse::Verify::Always}) {
    auto compiled = rehearse::compile(forward, {.verify = verify});
    for (const auto& [q, k, v] : {std::tuple(x, x, x), std::tuple(x, y, y), std::tuple(x, x.clone(), x.clone()),
                                  std::tuple(with_nan, with_nan, with_nan), std::tuple(x, x, x)}) {
      EXPECT_THAT(compiled(q, k, v).nan_to_num(), BitEqual(forward(q, k, v).nan_to_num()));
    }
    EXPECT_EQ(compiled.stats().eager_calls, 0);
  }
  // One graph holds one branch, and checks at run time that it is the right one.
  auto whole = rehearse::compile([&](const at::Tensor& z) { return forward(z, z, z); }, {.fullgraph = true});
  for (int call = 0; call < 2; ++call) EXPECT_THAT(whole(x), BitEqual(forward(x, x, x)));
  EXPECT_EQ(whole.stats().graphs, 1);
  EXPECT_THAT([&] { whole(with_nan); }, testing::ThrowsMessage<std::exception>(testing::HasSubstr("has a NaN now")));
  EXPECT_THAT(whole(y), BitEqual(forward(y, y, y)));
}

}  // namespace
}  // namespace rehearse_test
