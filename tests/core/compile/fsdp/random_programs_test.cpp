// SPDX-License-Identifier: BSD-3-Clause
// Modules with random code. The code uses parameters of units in any order, views of parameters, several parameters in
// one operator, checkpoints, buffers and reads. A compiled module must train as in eager mode, up to rounding.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rehearse/parallel/checkpoint.h>

#include "core/compile/fsdp/compiled_training.h"

namespace {

using namespace rehearse_test;
using rehearse::FullyShardedDataParallel;
using rehearse::RankContext;
using rehearse::UnitPolicy;

constexpr int kUnits = 4;
constexpr std::int64_t kSide = 6;

struct PartImpl : torch::nn::Module {
  PartImpl()
      : weight(register_parameter("weight", at::zeros({kSide, kSide}, at::kDouble))),
        bias(register_parameter("bias", at::zeros({kSide}, at::kDouble))) {}
  at::Tensor weight, bias;
};
TORCH_MODULE(Part);

enum class Kind {
  Linear,
  Transposed,
  Relu,
  InPlace,
  Sum,
  Checkpoint,
  Mean,
  Buffer,
  View,
  Detached,
  Joined,
  Read,
  Last
};

struct Line {
  Kind kind;
  std::size_t part, other;
  std::size_t value, more;  // indices, counted back from the last value
};

std::vector<Line> drawn(std::uint32_t seed) {
  std::mt19937 draw(seed);
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(draw() % bound); };
  std::vector<Line> lines;
  for (std::size_t i = 0, count = 6 + below(8); i < count; ++i) {
    const auto kind = static_cast<Kind>(below(static_cast<std::size_t>(Kind::Last)));
    lines.push_back({kind, below(kUnits), below(kUnits), below(2), below(3)});
  }
  return lines;
}

struct DrawnImpl : torch::nn::Module {
  explicit DrawnImpl(std::uint32_t seed)
      : lines(drawn(seed)), seen(register_buffer("seen", at::zeros({}, at::kDouble))) {
    for (int i = 0; i < kUnits; ++i) parts.push_back(register_module("part" + std::to_string(i), Part()));
  }

  at::Tensor forward(const at::Tensor& x) {
    std::vector<at::Tensor> values = {x};
    for (const Line& line : lines) {
      const auto back = [&](std::size_t by) { return values[values.size() - 1 - std::min(by, values.size() - 1)]; };
      values.push_back(value_of(line, back(line.value), back(line.more)).tanh());
    }
    at::Tensor sum = values.back();
    for (std::size_t i = 1; i + 1 < values.size(); i += 3) sum = sum + values[i];
    return at::linear(sum, parts[lines.size() % kUnits]->weight);
  }

  std::vector<Line> lines;
  std::vector<Part> parts;
  at::Tensor seen;

 private:
  at::Tensor value_of(const Line& line, const at::Tensor& v, const at::Tensor& more) {
    const Part part = parts[line.part], other = parts[line.other];
    switch (line.kind) {
      case Kind::Linear:
        return at::linear(v, part->weight, part->bias);
      case Kind::Transposed:
        return at::matmul(v, part->weight.t());
      case Kind::Relu:
        return v.relu();
      case Kind::InPlace:
        return v.clone().add_(part->bias);
      case Kind::Sum:
        return v + more;
      case Kind::Checkpoint:
        return rehearse::checkpoint(
            [part, other](const at::Tensor& h) {
              return at::linear(at::linear(h, part->weight, part->bias).relu(), other->weight);
            },
            v);
      case Kind::Mean:
        return v * part->weight.mean();
      case Kind::Buffer: {
        const at::NoGradGuard no_grad;
        seen.add_(part->weight.sum());
        break;
      }
      case Kind::View:
        return at::matmul(at::matmul(v, part->weight.narrow(0, 0, 3).t()), other->weight.narrow(0, 3, 3)) + seen;
      case Kind::Detached:
        return v * part->bias.detach() + more.detach();
      case Kind::Joined:
        return v * at::cat({part->weight, other->weight}).sum();
      case Kind::Read:
        return (v.sum() > 0.25).item<bool>() ? v : v * 2;
      case Kind::Last:
        break;
    }
    return v + seen;
  }
};
TORCH_MODULE(Drawn);

ShardedTraining trained(RankContext& ctx, std::uint32_t seed, bool reshards, const char* backend) {
  Drawn net(seed);
  fill(*net);
  FullyShardedDataParallel fsdp(net, ctx.group(),
                                {.units = UnitPolicy::of_type<PartImpl>(), .reshard_after_forward = reshards});
  auto compiled = rehearse::compile(fsdp, {.backend = backend == nullptr ? "eager" : backend});
  const auto call = [&](const at::Tensor& x) { return backend == nullptr ? fsdp(x) : compiled(x); };
  ShardedTraining training = train_sharded(fsdp, call, batches_of(ctx.rank(), 3));
  EXPECT_EQ(compiled.explain().refusal, "");
  training.shards.push_back(net->seen.clone());
  return training;
}

TEST(CompiledFsdpRandom, Programs_TrainAlike) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 3);
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << ranks << " ranks");
    run_ranks({.ranks = ranks}, [&](RankContext& ctx) {
      const bool reshards = seed % 2 == 0;
      const auto expected = trained(ctx, seed, reshards, nullptr);
      for (const char* const backend : {"eager", "aot_eager"}) {
        const auto found = trained(ctx, seed, reshards, backend);
        EXPECT_TRUE(close(found.outputs, expected.outputs)) << backend;
        EXPECT_TRUE(close(found.gradients, expected.gradients)) << backend;
        EXPECT_TRUE(close(found.shards, expected.shards)) << backend;
      }
    });
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
