// SPDX-License-Identifier: BSD-3-Clause
// The same small trainings as PyTorch's own DistributedDataParallel made over gloo: parameters and buffers of
// ranks are those that it recorded. Where every sum is exact (two steps, numbers of ranks that are powers of
// two) to the bit; elsewhere gloo adds in another order, and within rounding.
#include <bit>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/parallel/comm_hooks.h>
#include <rehearse/parallel/power_sgd.h>

#include "core/parallel/recorded_data.h"
#include "core/parallel/recorded_models.h"

namespace {

using namespace rehearse_test;
using namespace rehearse_test::recorded;
using rehearse::DistributedDataParallel;
using rehearse::RankContext;
using rehearse::parallel::PowerSgdOptions;
using Options = rehearse::DistributedDataParallelOptions;
using BuiltIn = c10d::BuiltinCommHookType;

constexpr double kSmall = 104.0 / (1 << 20);  // MiB: 13 doubles
constexpr int kSteps = 4;

// The states that one case passes through in one world.
class Notes {
 public:
  void note(const RankContext& ctx, int step, const torch::nn::Module& module) {
    auto& tensors = states_[{ctx.rank(), step}];
    for (const auto& item : module.named_parameters()) tensors[item.key()] = item.value().detach().clone();
    for (const auto& item : module.named_buffers()) tensors[item.key()] = item.value().detach().clone();
  }

  void expect(const RecordedState& state, int rank, double tolerance) const {
    const bool exact = tolerance == 0;
    const auto& tensors = states_.at({rank, state.step});
    for (const auto& [name, bits] : state.bits) {
      const auto& tensor = tensors.at(name);
      if (exact) {
        EXPECT_EQ(bits_of(tensor), bits) << name;
      } else {
        const auto expected = tensor_of(bits, tensor.scalar_type()).view_as(tensor);
        EXPECT_TRUE(at::allclose(tensor, expected, tolerance, tolerance)) << name << "\n"
                                                                          << tensor << expected;
      }
    }
  }

 private:
  std::map<std::pair<int, int>, std::map<std::string, at::Tensor>> states_;
};

using Body = std::function<void(RankContext&, Notes&)>;

struct Rounding {
  double relative = 1e-12;
  bool exact_at_first = true;  // steps 0 and 1 on powers of two
};

void expect_recorded(const std::string& name, const Body& body, Rounding rounding = {}) {
  std::map<int, std::vector<RecordedState>> by_ranks;
  for (auto& state : recorded_states(name)) by_ranks[state.ranks].push_back(state);
  EXPECT_EQ(by_ranks.size(), 5u);
  for (const auto& [ranks, states] : by_ranks) {
    for (const std::uint64_t seed : {1, 2}) {
      SCOPED_TRACE(testing::Message() << name << " on " << ranks << " ranks, seed " << seed);
      Notes notes;
      run_ranks({.ranks = ranks, .seed = seed}, [&](RankContext& ctx) { body(ctx, notes); });
      std::set<std::pair<int, int>> compared;
      for (const auto& state : states) {
        const bool exact = rounding.exact_at_first && state.step == 1 && std::has_single_bit(unsigned(ranks));
        notes.expect(state, state.rank, exact ? 0 : rounding.relative);
        compared.insert({state.rank, state.step});
        // What was not recorded of the last rank is as on the first; those came first.
        const bool own = std::any_of(states.begin(), states.end(), [&](const RecordedState& other) {
          return other.rank == ranks - 1 && other.step == state.step;
        });
        if (!own) notes.expect(state, ranks - 1, exact ? 0 : rounding.relative);
      }
    }
  }
}

struct Training {
  Options options = {};
  int steps = kSteps;
  double rate = 0.0625;
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
      descend(ddp.parameters(), training.rate);
      if (step == 1 || step == training.steps - 1) notes.note(ctx, step, *net);
    }
  };
}

constexpr auto kSum = [](auto& ddp, int rank, int step) { ddp(batch_of(rank, step)).sum().backward(); };
constexpr auto kSquares = [](auto& ddp, int rank, int step) {
  ddp(batch_of(rank, step)).square().sum().backward();
};
constexpr auto kNothing = [](auto&, RankContext&) {};

constexpr auto kAccumulate = [](auto& ddp, int rank, int step) {
  {
    const auto guard = ddp.no_sync();
    for (int micro = 0; micro < 2; ++micro) ddp(batch_of(rank, 10 * step + micro)).sum().backward();
  }
  ddp(batch_of(rank, 10 * step + 2)).sum().backward();
};

template <class Net, class Step = decltype(kSum)>
void expect_trained(const std::string& name, const Options& options = {}, Step step = kSum,
                    Rounding rounding = {}) {
  expect_recorded(name, training<Net>({.options = options}, step, kNothing), rounding);
}

TEST(DdpRecorded, Plain) {
  expect_trained<recorded::Mlp>("plain");
}
TEST(DdpRecorded, SmallBuckets) {
  expect_trained<recorded::Mlp>("small_buckets", {.bucket_cap_mb = kSmall});
}
TEST(DdpRecorded, BucketViews) {
  expect_trained<recorded::Mlp>("bucket_views", {.bucket_cap_mb = kSmall, .gradient_as_bucket_view = true});
}
TEST(DdpRecorded, FindUnused) {
  expect_trained<Branches>("find_unused", {.bucket_cap_mb = kSmall, .find_unused_parameters = true},
                           [](auto& ddp, int rank, int step) {
                             ddp(batch_of(rank, step), (rank + step) % 2 == 0).sum().backward();
                           });
}
TEST(DdpRecorded, SkipUnused) {
  expect_trained<Branches>(
      "skip_unused",
      {.bucket_cap_mb = kSmall, .find_unused_parameters = true, .skip_all_reduce_unused_params = true},
      [](auto& ddp, int rank, int step) { ddp(batch_of(rank, step), true).sum().backward(); });
}
TEST(DdpRecorded, StaticGraph) {
  expect_trained<Reused>("static_graph", {.bucket_cap_mb = kSmall, .static_graph = true}, kSum,
                         {.exact_at_first = false});
}
TEST(DdpRecorded, StaticGraphNoSync) {
  expect_trained<Reused>(
      "static_graph_no_sync", {.static_graph = true},
      [](auto& ddp, int rank, int step) { step == 0 ? kSum(ddp, rank, step) : kAccumulate(ddp, rank, step); },
      {.exact_at_first = false});
}
TEST(DdpRecorded, NoSync) {
  expect_trained<recorded::Mlp>("no_sync", {}, kAccumulate);
}
TEST(DdpRecorded, NoSyncFindUnused) {
  expect_trained<recorded::Mlp>("no_sync_find_unused", {.find_unused_parameters = true}, kAccumulate);
}
TEST(DdpRecorded, Ignored) {
  expect_trained<recorded::Mlp>("ignored", {.parameters_to_ignore = {"second.weight", "third.bias"}});
}
TEST(DdpRecorded, Buffers) {
  expect_trained<Norm>("buffers", {}, kSquares, {.exact_at_first = false});
}
TEST(DdpRecorded, BuffersLocal) {
  expect_trained<Norm>("buffers_local", {.broadcast_buffers = false}, kSquares, {.exact_at_first = false});
}
TEST(DdpRecorded, MixedDtypes) {
  expect_trained<Mixed>("mixed_dtypes", {}, kSum, {.relative = 1e-6});
}
TEST(DdpRecorded, Shared) {
  expect_trained<Tied>("shared");
}

TEST(DdpRecorded, Sparse) {
  expect_trained<Sparse>("sparse", {}, [](auto& ddp, int rank, int step) {
    ddp((at::arange(5) * (rank + 2) + step).remainder(10)).sum().backward();
  });
}

template <class Net>
void expect_joined(const std::string& name, const Options& options, bool divide_by_initial_world_size) {
  expect_recorded(name, [=](RankContext& ctx, Notes& notes) {
    auto net = std::make_shared<Net>();
    fill(*net, 7 * ctx.rank());
    Ddp<Net> ddp(net, ctx.group(), options);
    ddp.join(
        [&] {
          for (int step = 0; step < 2 + ctx.rank() % 3; ++step) {
            ddp.zero_grad();
            ddp(batch_of(ctx.rank(), step)).sum().backward();
            descend(ddp.parameters(), 0.0625);
          }
        },
        {.divide_by_initial_world_size = divide_by_initial_world_size});
    notes.note(ctx, -1, *net);
  });
}

TEST(DdpRecorded, Join) {
  expect_joined<recorded::Mlp>("join", {.bucket_cap_mb = kSmall}, true);
}
TEST(DdpRecorded, JoinEffectiveSize) {
  expect_joined<recorded::Mlp>("join_effective_size", {.bucket_cap_mb = kSmall}, false);
}
TEST(DdpRecorded, JoinFindUnused) {
  expect_joined<recorded::Mlp>("join_find_unused", {.find_unused_parameters = true}, true);
}
TEST(DdpRecorded, JoinBuffers) {
  expect_joined<Norm>("join_buffers", {}, true);
}

TEST(DdpRecorded, HookAllreduce) {
  expect_recorded("hook_allreduce", training<recorded::Mlp>({}, kSum, [](auto& ddp, RankContext&) {
                    ddp.register_comm_hook(BuiltIn::ALLREDUCE);
                  }));
}

// Sums of short floats depend on the order of ranks: half an ulp of theirs a rank.
TEST(DdpRecorded, HookFp16) {
  expect_recorded(
      "hook_fp16",
      training<recorded::Mlp>(
          {}, kSum, [](auto& ddp, RankContext&) { ddp.register_comm_hook(BuiltIn::FP16_COMPRESS); }),
      {.relative = 2e-3, .exact_at_first = false});
}

TEST(DdpRecorded, HookBf16) {
  expect_recorded(
      "hook_bf16",
      training<recorded::Mlp>({}, kSum,
                              [](auto& ddp, RankContext& ctx) {
                                ddp.register_comm_hook(rehearse::parallel::bf16_compress_hook(ctx.group()));
                              }),
      {.relative = 1.6e-2, .exact_at_first = false});
}

class DdpRecordedPowerSgd : public testing::TestWithParam<std::pair<const char*, PowerSgdOptions>> {};

TEST_P(DdpRecordedPowerSgd, Values) {
  auto options = GetParam().second;
  options.start_power_sgd_iter = 2;
  options.min_compression_rate = 1;
  expect_recorded(
      std::string("power_sgd_") + GetParam().first,
      training<Matrix>({.steps = 6, .rate = 1.0 / 512}, kSquares,
                       [=](auto& ddp, RankContext& ctx) {
                         ddp.register_comm_hook(rehearse::parallel::power_sgd_hook(
                             std::make_shared<rehearse::parallel::PowerSgd>(ctx.group(), options)));
                       }),
      {.relative = 1e-9, .exact_at_first = false});
}

INSTANTIATE_TEST_SUITE_P(
    Options, DdpRecordedPowerSgd,
    testing::Values(std::pair{"rank1", PowerSgdOptions{}},
                    std::pair{"rank2", PowerSgdOptions{.matrix_approximation_rank = 2}},
                    std::pair{"rank3_qr", PowerSgdOptions{.matrix_approximation_rank = 3}},
                    std::pair{"cold", PowerSgdOptions{.warm_start = false, .random_seed = 5}},
                    std::pair{"no_feedback", PowerSgdOptions{.use_error_feedback = false}},
                    std::pair{"batched", PowerSgdOptions{.batch_tensors_with_same_shape = true}},
                    std::pair{"epsilon", PowerSgdOptions{.orthogonalization_epsilon = 0.125}}),
    [](const auto& info) { return std::string(info.param.first); });

TEST(DdpRecorded, LoggingData) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    run_ranks({.ranks = ranks}, [&](RankContext& ctx) {
      Ddp<recorded::Mlp> ddp(std::make_shared<recorded::Mlp>(), ctx.group(), {.bucket_cap_mb = kSmall});
      for (int step = 0; step < kSteps; ++step) kSum(ddp, ctx.rank(), step);
      if (ctx.rank() != 0 && ctx.rank() != ranks - 1) return;
      const auto data = ddp.logging_data();
      for (const auto& [key, expected] : recorded_logging_data(ranks, ctx.rank())) {
        const auto text = data.strs_map.find(key);
        const auto number = data.ints_map.find(key);
        const auto found = text != data.strs_map.end()     ? text->second
                           : number != data.ints_map.end() ? std::to_string(number->second)
                                                           : "(absent)";
        if (key == "module_name") {
          EXPECT_THAT(found, testing::HasSubstr("Mlp"));
        } else {
          EXPECT_EQ(found, expected) << key;
        }
      }
    });
  }
}

}  // namespace
