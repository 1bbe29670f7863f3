// SPDX-License-Identifier: BSD-3-Clause
// Contract: every module of torch::nn and every function of torch::nn::functional gives, compiled in float32, the
// results, gradients and buffers of eager mode: in training and in evaluation, with gradients and without.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/pimpl.h>

#include <rehearse/compile/compile.h>

#include "core/compile/like_eager/nn_programs.h"

namespace rehearse_test {
namespace {

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
    for (std::size_t i = 0; i < buffers.size(); ++i)
      EXPECT_TRUE(buffers[i].equal(of_twin[i])) << what << ": buffer " << i;
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

}  // namespace
}  // namespace rehearse_test
