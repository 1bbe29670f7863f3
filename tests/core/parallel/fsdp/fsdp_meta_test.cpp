// SPDX-License-Identifier: BSD-3-Clause
// Modules on the meta device: FSDP never allocates the whole model at once, and training equals that of a module with
// values.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <rehearse/parallel/move_to_meta.h>

#include "bit_equal.h"
#include "core/parallel/fsdp/fsdp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::FromMeta;
using rehearse::FullyShardedDataParallel;
using rehearse::RankContext;
using rehearse::UnitPolicy;
using rehearse::test::BitEqual;
using ::testing::HasSubstr;

struct LayerImpl : torch::nn::Module {
  LayerImpl(int inputs, int outputs, const at::TensorOptions& options)
      : weight(register_parameter("weight", at::empty({outputs, inputs}, options))),
        bias(register_parameter("bias", at::empty({outputs}, options))) {}
  at::Tensor forward(const at::Tensor& x) { return at::linear(x, weight, bias); }
  at::Tensor weight, bias;
};
TORCH_MODULE(Layer);

// No number of ranks in these tests, except 1, divides the first layer's 7 rows.
struct NetImpl : torch::nn::Module {
  explicit NetImpl(at::Device device, int width = 7)
      : first(register_module("first", Layer(6, width, options(device)))),
        scale(register_parameter("scale", at::empty({1}, options(device)))),
        second(register_module("second", Layer(width, 3, options(device)))) {}
  at::Tensor forward(const at::Tensor& x) { return second(at::tanh(first(x))) * scale; }
  static at::TensorOptions options(at::Device device) { return at::TensorOptions(at::kDouble).device(device); }

  Layer first;
  at::Tensor scale;
  Layer second;
};
TORCH_MODULE(Net);

const UnitPolicy kLayers = UnitPolicy::of_type<LayerImpl>();

// Draws random values from the rank's generator.
void draw(const std::string&, at::Tensor whole) { whole.uniform_(-1, 1); }

Net real_net() {
  Net net(at::kCPU);
  const at::NoGradGuard no_grad;
  for (auto& each : net->parameters()) each.uniform_(-1, 1);
  return net;
}

std::vector<at::Tensor> trained(FullyShardedDataParallel<Net>& fsdp, int rank) {
  torch::optim::SGD optimizer(fsdp.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 2; ++step) {
    fsdp.zero_grad();
    fsdp(batch_of(rank, step)).square().sum().backward();
    optimizer.step();
  }
  return copies(fsdp.parameters());
}

TEST(FsdpMeta, FilledByAFunction_IsAsAModuleWithValues) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const bool sync : {true, false}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, init_sync=" << sync);
      run_ranks({.ranks = ranks}, [&](RankContext& ctx) {
        const auto seed = static_cast<std::uint64_t>(ctx.rank());
        ctx.generator().set_current_seed(seed);
        FullyShardedDataParallel expected(real_net(), ctx.group(), {.units = kLayers, .init_sync = sync});
        const auto drawn = at::rand({1});
        ctx.generator().set_current_seed(seed);
        Net net(at::kMeta);
        FullyShardedDataParallel fsdp(net, ctx.group(),
                                      {.units = kLayers, .from_meta = FromMeta{.fill = draw}, .init_sync = sync});
        EXPECT_THAT(at::rand({1}), BitEqual(drawn));
        EXPECT_THAT(copies(fsdp.parameters()), BitEqual(copies(expected.parameters())));
        EXPECT_EQ(net->first->weight.device(), at::Device(at::kCPU));
        EXPECT_THAT(trained(fsdp, ctx.rank()), BitEqual(trained(expected, ctx.rank())));
      });
    }
  }
}

TEST(FsdpMeta, OverAMesh_AllReplicasHaveTheFirstRanksValues) {
  run_ranks({.ranks = 4}, [](RankContext& ctx) {
    const rehearse::DeviceMesh mesh(ctx, {2, 2});
    ctx.generator().set_current_seed(static_cast<std::uint64_t>(ctx.rank()));
    FullyShardedDataParallel expected(real_net(), mesh, {.units = kLayers});
    ctx.generator().set_current_seed(static_cast<std::uint64_t>(ctx.rank()));
    FullyShardedDataParallel fsdp(Net(at::kMeta), mesh, {.units = kLayers, .from_meta = FromMeta{.fill = draw}});
    EXPECT_THAT(copies(fsdp.parameters()), BitEqual(copies(expected.parameters())));
    ctx.check_replicas(fsdp);
  });
}

TEST(FsdpMeta, LowerPrecision_IsThatOfTheModuleAlone) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    const rehearse::FullyShardedMixedPrecision half{.param_dtype = at::kBFloat16};
    Net net(at::kMeta);
    FullyShardedDataParallel fsdp(net, ctx.group(),
                                  {.units = kLayers, .mixed_precision = half, .from_meta = FromMeta{.fill = draw}});
    EXPECT_EQ(net->first->weight.scalar_type(), at::kBFloat16);
    EXPECT_EQ(fsdp.parameters()[0].scalar_type(), at::kDouble);
    EXPECT_EQ(fsdp(batch_of(0, 0)).scalar_type(), at::kBFloat16);
  });
}

TEST(FsdpMeta, LoadedFromAStateDict_IsAsAModuleWithValues) {
  for (const bool whole : {true, false}) {
    run_ranks({.ranks = 3}, [&](RankContext& ctx) {
      FullyShardedDataParallel expected(real_net(), ctx.group(), {.units = kLayers});
      FullyShardedDataParallel fsdp(Net(at::kMeta), ctx.group(), {.units = kLayers, .from_meta = FromMeta{}});
      const auto needs = [&](const std::string& call, auto&& body) {
        EXPECT_THAT(error_of<c10::Error>(body),
                    HasSubstr("FSDP: " + call +
                              " needs parameter \"scale\" of the root unit, which was made on the meta device and has "
                              "no values yet. Load a state dict first, or give from_meta.fill"));
      };
      needs("forward()", [&] { fsdp(batch_of(0, 0)); });
      needs("full_state_dict()", [&] { fsdp.full_state_dict(); });
      needs("sharded_state_dict()", [&] { fsdp.sharded_state_dict(); });
      const auto state = expected.full_state_dict();
      if (whole) {
        fsdp.load_full_state_dict(state);
      } else {
        std::vector<rehearse::SavedRows> rows;
        for (const auto& [name, tensor] : state) rows.push_back({name, tensor.sizes().vec(), 0, tensor});
        fsdp.load_sharded_state_dict(rows);
      }
      EXPECT_THAT(trained(fsdp, ctx.rank()), BitEqual(trained(expected, ctx.rank())));
    });
  }
}

TEST(FsdpMeta, TiedParameters_StayOne) {
  struct TiedImpl : torch::nn::Module {
    TiedImpl() : a(register_module("a", Layer(4, 4, NetImpl::options(at::kMeta)))) {
      register_parameter("again", a->weight);
    }
    at::Tensor forward(const at::Tensor& x) { return at::linear(a(x), a->weight); }
    Layer a;
  };
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    std::vector<std::string> names;
    const FromMeta from{.fill = [&](const std::string& name, at::Tensor whole) {
      names.push_back(name);
      whole.fill_(1);
    }};
    FullyShardedDataParallel fsdp(std::make_shared<TiedImpl>(), ctx.group(), {.from_meta = from});
    EXPECT_THAT(names, testing::UnorderedElementsAre("again", "a.bias"));
    EXPECT_THAT(fsdp(at::ones({1, 4}, at::kDouble)), BitEqual(at::full({1, 4}, 20.0, at::kDouble)));
  });
}

// Four layers of a little more than 1 MiB on four ranks. If the layers are on the meta device, a rank allocates its
// quarter of the model, and holds only one whole layer at a time.
rehearse::Report make_in(std::uint64_t bytes, at::Device device) {
  rehearse::World world({.ranks = 4, .memory_bytes = bytes});
  return world.run([&](RankContext& ctx) {
    std::vector<at::Tensor> tensors;
    auto net = std::make_shared<torch::nn::Module>("net");
    for (int i = 0; i < 4; ++i)
      net->register_module("layer" + std::to_string(i), Layer(256, 512, NetImpl::options(device)).ptr());
    struct Layers : torch::nn::Module {
      at::Tensor forward() { return {}; }
    };
    auto root = std::make_shared<Layers>();
    root->register_module("net", net);
    FullyShardedDataParallel fsdp(root, ctx.group(), {.units = kLayers, .from_meta = FromMeta{.fill = draw}});
  });
}

TEST(FsdpMeta, NoRankHasTheWholeModel) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  EXPECT_EQ(make_in(3 * kMiB, at::kMeta).verdict, rehearse::Verdict::ok);
  EXPECT_EQ(make_in(4 * kMiB, at::kCPU).verdict, rehearse::Verdict::out_of_memory);
}

// Four of LibTorch's own layers, with 1 MiB each.
struct ManyLinearsImpl : torch::nn::Module {
  explicit ManyLinearsImpl(bool on_meta) {
    for (int i = 0; i < 4; ++i) {
      layers.push_back(torch::nn::Linear(torch::nn::LinearOptions(512, 512).bias(false)));
      if (on_meta) rehearse::move_to_meta(*layers.back());
      register_module("layer" + std::to_string(i), layers.back());
    }
  }
  at::Tensor forward(at::Tensor x) {
    for (auto& each : layers) x = at::tanh(each(x));
    return x;
  }
  std::vector<torch::nn::Linear> layers;
};
TORCH_MODULE(ManyLinears);

rehearse::Report use_linears(std::uint64_t bytes, bool on_meta) {
  rehearse::World world({.ranks = 4, .memory_bytes = bytes});
  return world.run([&](RankContext& ctx) {
    ManyLinears net(on_meta);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear, .from_meta = FromMeta{.fill = draw}});
    const at::NoGradGuard no_grad;
    EXPECT_TRUE(fsdp(at::ones({1, 512})).isfinite().all().item<bool>());
  });
}

TEST(FsdpMeta, LayersMovedOneByOne_AreNeverThereAtOnce) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  const auto report = use_linears(4 * kMiB - 1, true);
  EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << brief(report);
  EXPECT_EQ(use_linears(4 * kMiB - 1, false).verdict, rehearse::Verdict::out_of_memory);
}

TEST(FsdpMeta, MoveToMeta_KeepsObjectsAndLetsGoOfTheirMemory) {
  rehearse::World world({.ranks = 1, .memory_bytes = 3 << 20});
  const auto report = world.run([](RankContext&) {
    ManyLinears net(true);  // 4 MiB in all
    for (const auto& each : net->parameters()) {
      EXPECT_TRUE(each.is_meta());
      EXPECT_TRUE(each.requires_grad());
      EXPECT_EQ(each.sizes(), (at::IntArrayRef{512, 512}));
    }
    EXPECT_TRUE(net->layers[0]->weight.is_meta());
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << brief(report);
  rehearse::World small({.ranks = 1, .memory_bytes = 3 << 20});
  EXPECT_EQ(small.run([](RankContext&) { ManyLinears net(false); }).verdict, rehearse::Verdict::out_of_memory);
}

TEST(FsdpMeta, MoveToMeta_RefusesAHistory) {
  struct HasHistory : torch::nn::Module {
    HasHistory() { parameters_.insert("w", at::ones({2}).requires_grad_() * 2); }
  };
  HasHistory net;
  EXPECT_THAT(error_of<c10::ValueError>([&] { rehearse::move_to_meta(net); }),
              HasSubstr("move_to_meta(): parameter \"w\" is computed from other tensors. Register what it is computed "
                        "from."));
}

std::string refusal_of(Net net, rehearse::FullyShardedOptions options) {
  std::string text;
  run_ranks({.ranks = 1}, [&](RankContext& ctx) {
    text = error_of<c10::ValueError>([&] { FullyShardedDataParallel(net, ctx.group(), options); });
  });
  return text;
}

TEST(FsdpMeta, WhatIsNotSupported_IsRefusedByName) {
  EXPECT_THAT(refusal_of(Net(at::kMeta), {}),
              HasSubstr("FSDP: parameter \"scale\" is on the meta device and has no values to shard. Say in from_meta "
                        "where it is to be and what fills it, or make the module on the CPU or a GPU."));
  EXPECT_THAT(refusal_of(Net(at::kMeta), {.from_meta = FromMeta{.device = at::kMeta}}),
              HasSubstr("FSDP: from_meta.device is meta, where nothing has values. Give the CPU or a GPU."));
  EXPECT_THAT(
      refusal_of(Net(at::kMeta), {.parameters_to_ignore = {"scale"}, .from_meta = FromMeta{.fill = draw}}),
      HasSubstr("FSDP: ignored parameter \"scale\" is on the meta device, and every rank keeps the whole of it. "
                "from_meta makes sharded parameters alone: make it on the CPU or a GPU."));
  Net with_buffer(at::kMeta);
  with_buffer->register_buffer("mean", at::zeros({3}, at::kMeta));
  EXPECT_THAT(refusal_of(with_buffer, {.from_meta = FromMeta{.fill = draw}}),
              HasSubstr("FSDP: buffer \"mean\" is on the meta device, and every rank keeps the whole of it."));
  const FromMeta resizing{.fill = [](const std::string&, at::Tensor whole) { whole.resize_({2}); }};
  EXPECT_THAT(refusal_of(Net(at::kMeta), {.from_meta = resizing}),
              HasSubstr("FSDP: from_meta.fill has given parameter \"scale\" sizes [2]; it has [1]. Fill it in place."));
}

}  // namespace
