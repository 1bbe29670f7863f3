// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's tests of compiled sharded models.
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/counting_backend.h>
#include <rehearse/parallel/checkpoint.h>

#include "bit_equal.h"
#include "core/compile/seeds/seed_test.h"
#include "core/compile/seeds/sharded_training.h"
#include "models/toy.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr test::ToyShape kToy{.hidden = 300};

const UnitPolicy kLinears = UnitPolicy::of_type<torch::nn::LinearImpl>();

TrainedShards train_toy(RankContext& ctx, const FullyShardedOptions& options) {
  return expect_sharded_like_eager(
      ctx, [] { return test::Toy(kToy); }, {.fsdp = options}, random_input(ctx, {20, kToy.in}));
}

TEST_F(TestMultiProc, test_fsdp_aot_eager) {
  on_ranks([this](RankContext& ctx) {
    const auto [told, compiles] = train_toy(ctx, {});
    expect_listed(told.stats, compiles, ctx.rank());
  });
}
TEST_F(TestMultiProcWithUnits, test_fsdp_aot_eager) {
  on_ranks([this](RankContext& ctx) {
    const auto [told, compiles] = train_toy(ctx, {.units = kLinears});
    expect_listed(told.stats, compiles, ctx.rank());
  });
}
TEST_F(TestMultiProc, test_fsdp_inductor) {
  on_ranks([this](RankContext& ctx) {
    const auto [told, compiles] = train_toy(ctx, {.reshard_after_forward = true});
    expect_listed(told.stats, compiles, ctx.rank());
  });
}
TEST_F(TestMultiProcWithUnits, test_fsdp_inductor) {
  on_ranks([this](RankContext& ctx) {
    const auto [told, compiles] = train_toy(ctx, {.units = kLinears, .reshard_after_forward = false});
    expect_listed(told.stats, compiles, ctx.rank());
  });
}

struct SettingToyImpl : torch::nn::Module {
  SettingToyImpl() : toy(register_module("toy", test::Toy(kToy))) {}
  at::Tensor forward(const at::Tensor& x) {
    state = 2;
    return toy->forward(x) * state;
  }
  test::Toy toy;
  double state = 1;
};
TORCH_MODULE(SettingToy);

TEST_F(TestMultiProc, test_fsdp_setattr) {
  on_ranks([this](RankContext& ctx) {
    const auto [told, compiles] = expect_sharded_like_eager(
        ctx, [] { return SettingToy(); }, {.compile = {.backend = "eager", .verify = Verify::Always}},
        random_input(ctx, {20, kToy.in}));
    EXPECT_THAT(told.break_reasons(), IsEmpty());
    EXPECT_EQ(told.stats.eager_calls, 0);
    expect_listed(told.stats, compiles, ctx.rank());
  });
}

// Has a layer that is not registered.
struct HidingImpl : torch::nn::Module {
  HidingImpl() : layer(register_module("layer", torch::nn::Linear(1, 1))) {}
  at::Tensor forward(const at::Tensor& x) {
    ++calls;
    return x * layer(x) * hidden->weight;
  }
  torch::nn::Linear layer, hidden{1, 1};
  int calls = 0;
};
TORCH_MODULE(Hiding);

// The hidden layer is in no unit, so FSDP neither shards it nor reduces its gradients.
TrainedShards train_hiding(RankContext& ctx, const CompileOptions& options) {
  std::vector<Hiding> made;
  auto trained = expect_sharded_like_eager(
      ctx, [&] { return made.emplace_back(Hiding()); }, {.compile = options}, random_input(ctx, {5, 1}));
  EXPECT_EQ(trained.told.entries.at(0).kept_by_reference.size(), 1U);
  EXPECT_GT(made.at(0)->calls, 0);
  EXPECT_THAT(made.at(0)->hidden->weight.grad(), BitEqual(made.at(1)->hidden->weight.grad()));
  return trained;
}

TEST_F(TestMultiProc, test_fsdp_unspecialized_forced_getattr_no_inline) {
  on_ranks([this](RankContext& ctx) {
    const auto [told, compiles] = train_hiding(ctx, {.backend = "eager"});
    expect_listed(told.stats, compiles, ctx.rank());
  });
}
TEST_F(TestMultiProc, test_fsdp_unspecialized_forced_getattr_inline) {
  on_ranks([this](RankContext& ctx) {
    const auto [told, compiles] = train_hiding(ctx, {.backend = "eager", .verify = Verify::Always});
    expect_listed(told.stats, compiles, ctx.rank());
  });
}

constexpr std::int64_t kWidthOfBlocks = 100;

struct InnerBlockImpl : torch::nn::Module {
  InnerBlockImpl() : layers(register_module("layers", torch::nn::Sequential())) {
    for (int i = 0; i < 2; ++i) layers->push_back(torch::nn::Linear(kWidthOfBlocks, kWidthOfBlocks));
  }
  at::Tensor forward(const at::Tensor& x) {
    torch::nn::Sequential part = layers;
    return checkpoint([part](const at::Tensor& h) mutable { return part->forward(h); }, x);
  }
  torch::nn::Sequential layers;
};
TORCH_MODULE(InnerBlock);

TEST_F(TestMultiProc, test_fsdp_activation_checkpointing) {
  on_ranks([this](RankContext& ctx) {
    const auto counting = std::make_shared<CountingBackend>(make_backend("aot_eager"));
    const auto is_block = [](const std::string&, const torch::nn::Module& module) {
      return dynamic_cast<const InnerBlockImpl*>(&module) != nullptr;
    };
    const auto [told, compiles] = expect_sharded_like_eager(
        ctx, [] { return torch::nn::Sequential(InnerBlock(), torch::nn::ReLU(), InnerBlock()); },
        {.fsdp = {.units = UnitPolicy::where(is_block)}, .compile = {.backend = counting}},
        random_input(ctx, {kWidthOfBlocks, kWidthOfBlocks}));
    EXPECT_EQ(counting->graphs(), 2U);
    for (const auto& piece : told.pieces()) EXPECT_THAT(piece.text, HasSubstr("tag_activation_checkpoint"));
    EXPECT_EQ(told.break_reasons(), std::vector<std::string>{"FSDP: unit \"2\" begins"});
    expect_listed(told.stats, compiles, ctx.rank());
  });
}

// compile() alone compiles nothing; the first call does.
TEST_F(TestSingleProc, test_fsdp_orig_params_assert) {
  on_ranks([this](RankContext& ctx) {
    test::Toy net(kToy);
    FullyShardedDataParallel fsdp(net, ctx.group());
    auto compiled = compile(fsdp);
    EXPECT_EQ(compiled.stats().compiles, 0);
    compiled(at::rand({20, kToy.in}));
    expect_listed(compiled.stats(), {1}, ctx.rank());
  });
}

// Guards check modules, but not the memory of parameters, which differs from call to call.
TEST_F(TestSingleProc, test_fsdp_skip_guards) {
  on_ranks([this](RankContext& ctx) {
    at::manual_seed(1);
    test::Toy net(kToy), reference(kToy);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.reshard_after_forward = false});
    FullyShardedDataParallel eager(reference, ctx.group());
    eager.load_full_state_dict(fsdp.full_state_dict());
    auto compiled = compile(fsdp, {.backend = "aot_eager", .fullgraph = true});
    const at::Tensor x = at::rand({20, kToy.in});
    Counts compiles;
    for (const bool trains : {true, true, false, false, true}) {
      net->train(trains);
      EXPECT_THAT(compiled(x), BitEqual(eager(x)));  // no backward frees the unit: later calls find it whole
      compiles.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
    }
    const Explanation told = compiled.explain();
    ASSERT_EQ(told.recompiles.size(), 1U);
    EXPECT_EQ(told.recompiles.at(0).failures.at(0).source, "module.is_training()");
    EXPECT_THAT(told.text(), Not(HasSubstr("storage_bytes")));
    expect_listed(told.stats, compiles, ctx.rank());
  });
}

TEST_F(TestSingleProc, test_fsdp_skip_register_attr_or_module) {
  on_ranks([this](RankContext& ctx) {
    const auto make = [] {
      return torch::nn::Sequential(torch::nn::Linear(10, 300), torch::nn::ReLU(), torch::nn::Linear(300, 5));
    };
    const auto [told, compiles] = expect_sharded_like_eager(ctx, make, {}, random_input(ctx, {20, 10}));
    const auto& graph = *told.entries.at(0).graphs.at(0).module;
    EXPECT_THAT(graph.attributes(), IsEmpty());
    std::vector<std::string> fetched, inputs;
    for (const auto& node : graph.graph()) {
      if (node.op() == graph::Op::GetAttr) fetched.push_back(node.target());
      if (node.op() == graph::Op::Placeholder) inputs.push_back(node.target());
    }
    for (const char* const layer : {"0", "2"}) {
      for (const char* const name : {".weight", ".bias"}) {
        EXPECT_THAT(fetched, Not(::testing::Contains(HasSubstr(std::string(layer) + name))));
        EXPECT_THAT(inputs, ::testing::Contains(std::string(layer) + name));
      }
    }
    expect_listed(told.stats, compiles, ctx.rank());
  });
}

struct TwiceImpl : torch::nn::Module {
  TwiceImpl()
      : layer(register_module("layer", torch::nn::Linear(3, 3))),
        buffer(register_buffer("buffer", at::randn({3}))),
        tensor(at::randn({3})) {}
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor z = layer(x) + buffer + buffer;
    z += tensor + tensor;
    return z;
  }
  torch::nn::Linear layer;
  at::Tensor buffer, tensor;
};
TORCH_MODULE(Twice);

TEST_F(TestSingleProc, test_fsdp_dup_tensors_same_source) {
  on_ranks([this](RankContext& ctx) {
    const auto [told, compiles] = expect_sharded_like_eager(ctx, [] { return Twice(); }, {}, random_input(ctx, {2, 3}));
    expect_listed(told.stats, compiles, ctx.rank());
  });
}

struct ChildImpl : torch::nn::Module {
  explicit ChildImpl(const at::Tensor& shared) : buffer(register_buffer("buffer", shared)) {}
  at::Tensor forward(const at::Tensor& x) { return x + buffer; }
  at::Tensor buffer;
};
TORCH_MODULE(Child);

// The module shares its buffer with its child.
struct ParentImpl : torch::nn::Module {
  ParentImpl()
      : parameter(register_parameter("parameter", at::randn({1}))),
        buffer(register_buffer("buffer", at::randn({3}))),
        child(register_module("child", Child(buffer))) {}
  at::Tensor forward(const at::Tensor& x) {
    buffer.mul_(2);
    return child(x) * parameter + buffer;
  }
  at::Tensor parameter, buffer;
  Child child;
};
TORCH_MODULE(Parent);

TEST_F(TestSingleProc, test_fsdp_dup_tensors_diff_source) {
  on_ranks([this](RankContext& ctx) {
    std::vector<Parent> made;
    const auto [told, compiles] = expect_sharded_like_eager(
        ctx, [&] { return made.emplace_back(Parent()); }, {.steps = 15}, random_input(ctx, {2, 3}));
    EXPECT_TRUE(made.at(0)->buffer.is_same(made.at(0)->child->buffer));
    EXPECT_THAT(made.at(0)->buffer, BitEqual(made.at(1)->buffer));
    expect_listed(told.stats, compiles, ctx.rank());
  });
}

struct StaticImpl : torch::nn::Module {
  explicit StaticImpl(bool by_itself)
      : layer(register_module("layer", torch::nn::Linear(3, 3))), by_itself(by_itself) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = layer(x);
    return by_itself ? this->sum_of(y, x) : StaticImpl::sum_of(y, x);
  }
  static at::Tensor sum_of(const at::Tensor& a, const at::Tensor& b) { return a + b; }
  torch::nn::Linear layer;
  bool by_itself;
};
TORCH_MODULE(Static);

TEST_F(TestSingleProc, test_fsdp_staticmethod) {
  on_ranks([this](RankContext& ctx) {
    for (const bool by_itself : {true, false}) {
      const auto [told, compiles] =
          expect_sharded_like_eager(ctx, [&] { return Static(by_itself); }, {}, random_input(ctx, {2, 3}));
      expect_listed(told.stats, compiles, ctx.rank());
    }
  });
}

}  // namespace
}  // namespace rehearse::compiler
