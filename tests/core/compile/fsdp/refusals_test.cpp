// SPDX-License-Identifier: BSD-3-Clause
// Uses of sharded parameters that compiled code must avoid, and their errors.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/native/Resize.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/capture/storage.h>
#include <rehearse/compile/backend.h>
#include <rehearse/compile/errors.h>
#include <rehearse_internal/capture/errors.h>

#include "bit_equal.h"
#include "core/compile/fsdp/compiled_training.h"

namespace {

using namespace rehearse_test;
using rehearse::FullyShardedDataParallel;
using rehearse::RankContext;
using rehearse::test::BitEqual;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct MeddlingImpl : MlpImpl {
  std::function<void(const at::Tensor& weight)> meddle;
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = first(x).relu();
    meddle(second->weight);
    return third(second(y).relu());
  }
};
TORCH_MODULE(Meddling);

// Runs a world of 2 ranks. Expects that a compiled call throws `Error`, with a text that begins with `begin`, and that
// no unit stays whole.
template <class Error>
void expect_refused(std::function<void(const at::Tensor&)> meddle, const rehearse::CompileOptions& options,
                    const std::string& begin) {
  run_ranks({.ranks = 2}, [&](RankContext& ctx) {
    Meddling net;
    net->meddle = meddle;
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    auto compiled = rehearse::compile(fsdp, options);
    EXPECT_THAT(error_of<Error>([&] { compiled(batch_of(ctx.rank(), 0)); }), StartsWith(begin));
    for (const auto& unit : fsdp.units()) EXPECT_FALSE(unit.is_whole) << unit.name;
  });
}

TEST(CompiledFsdpRefusals, QuestionAboutAStorage_IsRefused) {
  const auto ask = [](const at::Tensor& weight) { rehearse::storage_bytes(weight); };
  expect_refused<rehearse::capture::NotCapturable>(
      ask, {.fullgraph = true},
      "the function asks for the storage of parameter \"second.weight\" of unit \"second\", which "
      "FullyShardedDataParallel frees and fills");
}

// Without fullgraph, the code runs in eager mode and finds the whole parameter.
TEST(CompiledFsdpRefusals, QuestionAboutAStorage_RunsAsItIs) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    std::vector<std::int64_t> bytes;
    Meddling net;
    net->meddle = [&](const at::Tensor& weight) { bytes.push_back(rehearse::storage_bytes(weight).expect_int()); };
    fill(*net);
    Mlp reference;
    fill(*reference);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    auto compiled = rehearse::compile(fsdp);
    for (int step = 0; step < 2; ++step) {
      const auto x = batch_of(ctx.rank(), step);
      EXPECT_THAT(compiled(x), BitEqual(reference(x)));
    }
    EXPECT_EQ(bytes, (std::vector<std::int64_t>(2, 8 * 16 * 16)));
    EXPECT_THAT(compiled.explain().refusal, HasSubstr("parameter \"second.weight\" of unit \"second\""));
  });
}

constexpr const char* kNotHere =
    "FSDP: the parameter \"second.weight\" of unit \"second\" is asked for its elements, which are not here";

void look_at(const at::Tensor& weight) { weight.data_ptr(); }

TEST(CompiledFsdpRefusals, LookAtAParametersMemory_IsRefused) {
  expect_refused<rehearse::capture::NotCapturable>(look_at, {.fullgraph = true},
                                                   std::string(kNotHere) + ", at refusals_test.cpp:");
}

// In eager mode, too, a parameter has no memory before its unit's first operator.
TEST(CompiledFsdpRefusals, LookInFrontOfTheUnit_IsRefusedAsInEagerMode) {
  expect_refused<c10::Error>(look_at, {}, std::string(kNotHere) + ": it is sharded");
}

// Reads a parameter's memory after the unit's first operator, when the parameter has memory in eager mode.
struct LookingImpl : MlpImpl {
  std::vector<double> seen;
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = second(first(x).relu()).relu();
    seen.push_back(second->weight.data_ptr<double>()[0]);
    return third(y);
  }
};
TORCH_MODULE(Looking);
TEST(CompiledFsdpRefusals, LookAtAParametersMemory_RunsAsItIs) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Looking net, reference;
    fill(*net);
    fill(*reference);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    FullyShardedDataParallel eager(reference, ctx.group(), {.units = kEachLinear});
    auto compiled = rehearse::compile(fsdp);
    const auto batches = batches_of(ctx.rank());
    const auto expected = train_sharded(eager, [&](const at::Tensor& x) { return eager(x); }, batches);
    expect_same_training(train_sharded(fsdp, [&](const at::Tensor& x) { return compiled(x); }, batches), expected);
    EXPECT_EQ(net->seen, reference->seen);
    EXPECT_THAT(compiled.explain().refusal, StartsWith(kNotHere));
  });
}

constexpr const char* kChanged =
    " changes parameter \"second.weight\" of unit \"second\" in place, and the change would be lost when its memory is "
    "freed";

TEST(CompiledFsdpRefusals, ResizedStorage_IsRefused) {
  for (const char* const backend : {"aot_eager", "eager"}) {
    expect_refused<c10::Error>([](const at::Tensor& weight) { rehearse::resize_storage(weight, 0); },
                               {.backend = backend, .fullgraph = true},
                               std::string("FSDP: rehearse::resize_storage") + kChanged);
  }
}

TEST(CompiledFsdpRefusals, ChangeInPlace_IsRefused) {
  const auto change = [](const at::Tensor& weight) {
    const at::NoGradGuard no_grad;
    weight.mul_(2);
  };
  expect_refused<c10::Error>(change, {.backend = "eager", .fullgraph = true},
                             std::string("FSDP: aten::mul_") + kChanged);
  // aot_eager changes a copy, and then writes the copy back.
  expect_refused<c10::Error>(change, {.fullgraph = true}, std::string("FSDP: aten::copy_") + kChanged);
}

// A back end that frees the memory of parameters by itself.
class Resizing final : public rehearse::compiler::Backend {
 public:
  std::string name() const override { return "resizing"; }
  rehearse::compiler::CompiledGraph compile(const rehearse::compiler::BackendInput& input) override {
    const auto inner = rehearse::compiler::make_backend("eager")->compile(input);
    return rehearse::compiler::CompiledGraph([inner](std::vector<c10::IValue> inputs) {
      const std::vector<c10::IValue> held = inputs;
      auto values = inner(std::move(inputs));
      for (const auto& each : held) {
        if (each.isTensor() && each.toTensor().requires_grad() && each.toTensor().is_leaf())
          at::native::resize_bytes_nocuda(each.toTensor().storage(), 0);
      }
      return values;
    });
  }
};
TEST(CompiledFsdpRefusals, BackEndThatResizesStorages_IsFoundAtTheNextUse) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net;
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear, .reshard_after_forward = false});
    auto compiled = rehearse::compile(fsdp, {.backend = std::make_shared<Resizing>(), .fullgraph = true});
    const auto y = compiled(batch_of(ctx.rank(), 0));
    EXPECT_THAT(error_of<c10::Error>([&] { y.sum().backward(); }),
                StartsWith("FSDP: somebody has resized the storage of parameter \"third.weight\" of unit \"third\" to "
                           "0 bytes, while its 384 are in use"));
    fsdp.zero_grad();
  });
}

// If `uses_third` changes, the code uses another parameter than at capture. No guard sees this member.
struct SwitchingImpl : MlpImpl {
  SwitchingImpl() : MlpImpl(6, 6, 6) {
    for (const auto& each : {second->weight, third->weight}) each.set_requires_grad(false);
  }
  at::Tensor forward(const at::Tensor& x) { return at::linear(first(x), uses_third ? third->weight : second->weight); }
  bool uses_third = false;
};
TORCH_MODULE(Switching);
TEST(CompiledFsdpRefusals, OtherParameterThanCaptured_IsStale) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Switching net;
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    auto compiled = rehearse::compile(fsdp, {.fullgraph = true});
    compiled(batch_of(ctx.rank(), 0));
    net->uses_third = true;
    EXPECT_THAT(error_of<rehearse::compiler::StaleCapture>([&] { compiled(batch_of(ctx.rank(), 0)); }),
                HasSubstr("and is torch.ops.aten.linear.default(%linear, %third_weight)"));
  });
}

TEST(CompiledFsdpRefusals, FunctionAroundAForward_SaysWhatToCompile) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net;
    FullyShardedDataParallel fsdp(net, ctx.group());
    auto around = rehearse::compile([&](const at::Tensor& x) { return fsdp(x); }, {.fullgraph = true});
    EXPECT_THAT(error_of<rehearse::capture::NotCapturable>([&] { around(batch_of(ctx.rank(), 0)); }),
                HasSubstr("Compile the FullyShardedDataParallel itself: rehearse::compile(fsdp)"));
  });
}

// The graph drops code whose result nobody uses. Thus it also drops the unit that only this code uses. The report
// distinguishes two units of the same sizes.
struct WastefulImpl : MlpImpl {
  WastefulImpl() : MlpImpl(6, 6, 6) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = first(x).relu();
    second(y);
    return third(y);
  }
};
TORCH_MODULE(Wasteful);
TEST(CompiledFsdpRefusals, UnitThatOneRankLacks_IsAMismatch) {
  rehearse::World world({.ranks = 2});
  const auto report = world.run([](RankContext& ctx) {
    Wasteful net;
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    auto compiled = rehearse::compile(fsdp, {.fullgraph = true});
    const auto x = batch_of(ctx.rank(), 0);
    ctx.rank() == 0 ? compiled(x) : fsdp(x);
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::mismatch) << brief(report);
  EXPECT_THAT(report.headline, HasSubstr("FSDP unit \"third\": parameters"));
  EXPECT_THAT(report.headline, HasSubstr("FSDP unit \"second\": parameters"));
}

// An optimizer step changes the shards between a forward and its backward. The backward gathers the shards again.
TEST(CompiledFsdpRefusals, StepInFrontOfBackward_IsRefused) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net;
    fill(*net);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    auto compiled = rehearse::compile(fsdp, {.fullgraph = true});
    const auto y = compiled(batch_of(ctx.rank(), 0));
    {
      const at::NoGradGuard no_grad;
      for (const auto& each : fsdp.parameters()) each.mul_(0.5);
    }
    EXPECT_THAT(error_of<c10::Error>([&] { y.sum().backward(); }),
                StartsWith("FSDP: the shards of unit \"third\" were changed between a forward and its backward"));
    fsdp.zero_grad();
  });
}

}  // namespace
