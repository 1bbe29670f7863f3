// SPDX-License-Identifier: BSD-3-Clause
// The compile time of a layer must not grow with the number of layers. The test measures the CPU time of this thread in
// rounds and takes the least. While the limit is exceeded, it adds rounds, because other work on the machine can make a
// round slower but not faster. If a quadratic term were a tenth of the cost at 100 layers, the cost per layer would
// double at 1,200 layers.
#include <algorithm>
#include <cstdint>
#include <limits>

#include <time.h>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>

namespace rehearse::compiler {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double seconds_per_layer(std::int64_t layers) {
  torch::nn::Sequential net;
  for (std::int64_t i = 0; i < layers; ++i) {
    net->push_back(torch::nn::Linear(2, 2));
    net->push_back(torch::nn::Tanh());
  }
  const at::Tensor x = at::ones({2, 2});
  auto compiled = compile(net, {.fullgraph = true});
  const double begin = cpu_seconds();
  compiled(x);
  return (cpu_seconds() - begin) / static_cast<double>(layers);
}

TEST(LinearTime, ALayerCostsTheSameInALargeModel) {
  constexpr double kLimit = 2.5;
  double small = std::numeric_limits<double>::infinity(), large = small;
  for (int round = 0; round < 8 && !(round >= 2 && large < kLimit * small); ++round) {
    small = std::min(small, seconds_per_layer(100));
    large = std::min(large, seconds_per_layer(1200));
  }
  EXPECT_LT(large, kLimit * small) << small << " s a layer of 100, " << large << " s of 1,200";
}

}  // namespace
}  // namespace rehearse::compiler
