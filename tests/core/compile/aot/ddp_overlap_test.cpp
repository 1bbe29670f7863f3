// SPDX-License-Identifier: BSD-3-Clause
// DistributedDataParallel around compiled pieces: gradients have eager's bits, and a bucket is reduced while the
// backward of earlier pieces runs.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/capture/fake_tensor.h>

#include "bit_equal.h"
#include "core/compile/aot/part_check.h"
#include "core/parallel/ddp_fixture.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using rehearse_test::values;

constexpr std::int64_t kWidth = 64;
constexpr int kLayers = 4;
constexpr int kSteps = 4;

// Layers of linear and tanh, in `parts` compiled pieces; eager if `parts` is 0.
struct LayersImpl : torch::nn::Module {
  explicit LayersImpl(int parts) : parts_(parts) {
    for (int layer = 0; layer < kLayers; ++layer) {
      const std::string number = std::to_string(layer);
      parameters_.push_back(register_parameter("weight" + number, values({kWidth, kWidth}, layer)));
      parameters_.push_back(register_parameter("bias" + number, values({kWidth}, layer + 50)));
    }
  }

  at::Tensor forward(at::Tensor x) {
    if (parts_ == 0) {
      for (std::size_t i = 0; i < parameters_.size(); i += 2)
        x = at::linear(x, parameters_[i], parameters_[i + 1]).tanh();
      return x;
    }
    const std::size_t of_each = parameters_.size() / static_cast<std::size_t>(parts_);
    for (std::size_t part = 0; part < static_cast<std::size_t>(parts_); ++part) {
      std::vector<c10::IValue> inputs{x};
      for (std::size_t i = 0; i < of_each; ++i) inputs.emplace_back(parameters_[part * of_each + i]);
      if (compiled_.size() <= part) compiled_.push_back(compile(inputs, part));
      x = compiled_[part](inputs)[0].toTensor();
    }
    return x;
  }

 private:
  CompiledGraph compile(const std::vector<c10::IValue>& inputs, std::size_t part) {
    std::string names = "x", steps, last = "x";
    std::vector<c10::IValue> examples;
    for (std::size_t i = 0; i + 1 < inputs.size(); i += 2) {
      const std::string number = std::to_string(i / 2);
      names += " w" + number + " b" + number;
      steps += "h" + number + " = aten.linear.default [%" + last + ", %w" + number + ", %b" + number + "]\n";
      steps += "t" + number + " = aten.tanh.default [%h" + number + "]\n";
      last = "t" + number;
    }
    for (const c10::IValue& input : inputs) {
      examples.emplace_back(capture::make_fake(capture::spec_of(input.toTensor())));
    }
    return backend_.compile({rehearse_test::part(names, steps, "[%" + last + "]"), examples, shapes::ShapeEnv::make(),
                             "submod_" + std::to_string(part)});
  }

  int parts_;
  std::vector<at::Tensor> parameters_;
  AotEagerBackend backend_;
  std::vector<CompiledGraph> compiled_;
};
TORCH_MODULE(Layers);

// The bucket size that gives each layer its own bucket.
constexpr double kOneLayerMb = (kWidth * kWidth + kWidth) * 8.0 / (1024 * 1024);

// If `squared` is false, the output's gradient is one number, expanded, and aot_eager records another backward for this
// layout.
std::vector<at::Tensor> train(const RankContext& ctx, int parts, bool squared = true) {
  Layers net(parts);
  DistributedDataParallel<Layers> ddp(net, ctx.group(), {.bucket_cap_mb = kOneLayerMb});
  for (int step = 0; step < kSteps; ++step) {
    ddp.zero_grad();
    const at::Tensor output = ddp.forward(rehearse_test::batch_of(ctx.rank(), step, 3, kWidth));
    (squared ? output.pow(2) : output).sum().backward();
    rehearse_test::descend(net->parameters(), 1.0 / 1024);
  }
  return rehearse_test::gradient_copies(net->parameters());
}

TEST(CompiledDdp, GradientsAreEagersOnTwoAndEightRanks) {
  for (const int ranks : {2, 8}) {
    rehearse_test::run_ranks({.ranks = ranks, .seed = 3}, [](RankContext& ctx) {
      for (const bool squared : {true, false}) {
        const auto eager = train(ctx, 0, squared);
        for (const int parts : {1, 2, kLayers}) {
          EXPECT_THAT(train(ctx, parts, squared), BitEqual(eager)) << parts << " parts";
        }
      }
    });
  }
}

struct Training {
  Report report;
  // One entry for each rank and step. An entry has one number for each two consecutive pieces, the last two first. The
  // number says how many all-reduces were launched between the backwards of these two pieces.
  std::vector<std::vector<int>> launched_between;
};

Training train_in_virtual_time(int parts) {
  WorldOptions options{.ranks = 2, .seed = 3};
  options.keep_all_events = true;
  options.compute.flops_per_second = 1e9;
  World world(options);
  Training training;
  training.report = world.run([parts](RankContext& ctx) { train(ctx, parts); });
  const comm::EventLog& events = world.events();
  const auto launched = [&](int rank, std::uint64_t from, std::uint64_t to) {
    int count = 0;
    for (const comm::Event& event : events.kept()) {
      const bool reduces = events.signature(event).name == "allreduce";
      count += reduces && event.rank == rank && event.record_id >= from && event.record_id < to;
    }
    return count;
  };
  for (int rank = 0; rank < options.ranks; ++rank) {
    std::vector<comm::Span> backwards;
    for (const comm::Span& span : events.spans().kept()) {
      if (span.rank == rank && events.spans().name(span).starts_with("backward")) backwards.push_back(span);
    }
    EXPECT_EQ(backwards.size(), static_cast<std::size_t>(parts * kSteps));
    for (std::size_t i = 0; i < backwards.size(); i += static_cast<std::size_t>(parts)) {
      std::vector<int>& step = training.launched_between.emplace_back();
      for (std::size_t part = 0; part < static_cast<std::size_t>(parts); ++part) {
        const comm::Span& span = backwards[i + part];
        EXPECT_EQ(events.spans().name(span),
                  "backward of submod_" + std::to_string(parts - 1 - static_cast<int>(part)));
        if (part > 0) step.push_back(launched(rank, backwards[i + part - 1].calls_before_end, span.calls_before_begin));
      }
    }
  }
  return training;
}

// Checks the steps from the third on, because in the first step, one bucket has all parameters, and the second step
// rebuilds the buckets.
TEST(CompiledDdp, ABucketIsReducedWhileEarlierPartsRunTheirBackward) {
  const Training split = train_in_virtual_time(kLayers);
  ASSERT_EQ(split.report.verdict, Verdict::ok);
  ASSERT_EQ(split.launched_between.size(), std::size_t{2 * kSteps});
  for (std::size_t i = 0; i < split.launched_between.size(); ++i) {
    if (i % kSteps < 2) continue;
    EXPECT_THAT(split.launched_between[i], testing::ElementsAre(1, 1, 1)) << "step " << i % kSteps;
  }
  const Training whole = train_in_virtual_time(1);
  ASSERT_EQ(whole.report.verdict, Verdict::ok);
  EXPECT_LT(split.report.end_time, whole.report.end_time);
}

}  // namespace
}  // namespace rehearse::compiler
