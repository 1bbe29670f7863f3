// SPDX-License-Identifier: BSD-3-Clause
// Repeats the small trainings that PyTorch's DistributedDataParallel made over gloo. The first and the last rank must
// have the recorded parameters and buffers. If the number of ranks is a power of two, every sum of the first two steps
// is exact in most cases (Rounding::exact_at_first), so the values after these steps must agree to the bit. All other
// values agree within rounding, because gloo adds in another order.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/parallel/recorded/recorded_data.h"
#include "core/parallel/recorded/recorded_models.h"

namespace rehearse_test::recorded {

using rehearse::DistributedDataParallel;
using rehearse::RankContext;
using Options = rehearse::DistributedDataParallelOptions;

constexpr double kSmall = 104.0 / (1 << 20);  // in MiB: 13 doubles
constexpr int kSteps = 4;

// The parameters and buffers of each rank after some steps of one case in one world.
class Notes {
 public:
  void note(const RankContext& ctx, int step, const torch::nn::Module& module);
  void expect(const RecordedState& state, int rank, double tolerance) const;  // 0: to the bit

 private:
  std::map<std::pair<int, int>, std::map<std::string, at::Tensor>> states_;
};

using Body = std::function<void(RankContext&, Notes&)>;

struct Rounding {
  double relative = 1e-12;
  bool exact_at_first = true;  // the first two steps do not round if the number of ranks is a power of two
};

// Runs the body on each recorded number of ranks, and compares its notes with the recorded states of the case.
void expect_recorded(const std::string& name, const Body& body, Rounding rounding = {});

struct Training {
  Options options = {};
  int steps = kSteps;
  double rate = 0.0625;
  int idle = 0;  // number of first steps that change no parameter
};

template <class Net>
using Ddp = DistributedDataParallel<std::shared_ptr<Net>>;

template <class Net, class Step, class Prepare>
Body training(const Training& training, Step step_of, Prepare prepare) {
  return [=](RankContext& ctx, Notes& notes) {
    auto net = std::make_shared<Net>();
    fill(*net, 7 * ctx.rank());
    Ddp<Net> ddp(net, ctx.group(), training.options);
    prepare(ddp, ctx);
    for (int step = 0; step < training.steps; ++step) {
      ddp.zero_grad(/*set_to_none=*/!training.options.gradient_as_bucket_view);
      step_of(ddp, ctx.rank(), step);
      if (step >= training.idle) descend(ddp.parameters(), training.rate);
      if (step == 1 || step == training.steps - 1) notes.note(ctx, step, *net);
    }
  };
}

inline constexpr auto kSum = [](auto& ddp, int rank, int step) {
  ddp(batch_of(rank, step)).to(at::kDouble).sum().backward();
};
inline constexpr auto kSquares = [](auto& ddp, int rank, int step) {
  ddp(batch_of(rank, step)).square().sum().backward();
};
inline constexpr auto kBranch = [](auto& ddp, int rank, int step) {
  ddp(batch_of(rank, step), (rank + step) % 2 == 0).sum().backward();
};
inline constexpr auto kNothing = [](auto&, RankContext&) {};

inline constexpr auto kAccumulate = [](auto& ddp, int rank, int step) {
  {
    const auto guard = ddp.no_sync();
    for (int micro = 0; micro < 2; ++micro) ddp(batch_of(rank, 10 * step + micro)).sum().backward();
  }
  ddp(batch_of(rank, 10 * step + 2)).sum().backward();
};

template <class Net, class Step = decltype(kSum)>
void expect_trained(const std::string& name, const Options& options = {}, Step step = kSum, Rounding rounding = {}) {
  expect_recorded(name, training<Net>({.options = options}, step, kNothing), rounding);
}

}  // namespace rehearse_test::recorded
