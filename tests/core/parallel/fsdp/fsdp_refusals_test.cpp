// SPDX-License-Identifier: BSD-3-Clause
// Uses that cannot work are errors. An error about a parameter names the parameter, and also its unit if the parameter
// is in one.
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include "bit_equal.h"
#include "core/parallel/fsdp/fsdp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::FullyShardedDataParallel;
using rehearse::FullyShardedOptions;
using rehearse::RankContext;
using rehearse::UnitPolicy;
using rehearse::test::BitEqual;
using ::testing::HasSubstr;

template <class Body>
void alone(Body&& body) {
  run_ranks({.ranks = 1}, [&](RankContext& ctx) {
    Mlp net;
    fill(*net);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    body(ctx, net, fsdp);
  });
}

void train(auto& fsdp) { fsdp(batch_of(0, 0)).square().sum().backward(); }

TEST(FsdpRefuses, ParametersOutsideOfForwardAndBackward) {
  alone([](RankContext&, Mlp& net, auto& fsdp) {
    const std::string text =
        "FSDP: aten::mul uses parameter \"second.weight\" of unit \"second\" outside of forward() and backward(), "
        "where "
        "it is sharded. Give fsdp.parameters() to optimizers, save fsdp.full_state_dict(), and use the module's own "
        "parameters inside of forward() or forward_with() only";
    EXPECT_THAT(error_of<c10::Error>([&] { net->second->weight * 2; }), HasSubstr(text));
    train(fsdp);
    EXPECT_THAT(error_of<c10::Error>([&] { net->second->weight * 2; }), HasSubstr(text));
  });
}

TEST(FsdpRefuses, OptimizersWithTheModulesParameters) {
  alone([](RankContext&, Mlp& net, auto& fsdp) {
    torch::optim::SGD sgd(net->parameters(), 0.1);
    torch::optim::AdamW adam(net->parameters());
    train(fsdp);
    EXPECT_THAT(error_of<c10::Error>([&] { sgd.step(); }), HasSubstr("\"first.weight\" of unit \"first\""));
    EXPECT_THAT(error_of<c10::Error>([&] { adam.step(); }), HasSubstr("\"first.weight\" of unit \"first\""));
  });
}

TEST(FsdpRefuses, GradientsOfTheModule) {
  alone([](RankContext&, Mlp& net, auto& fsdp) {
    train(fsdp);
    const std::string text =
        "uses the gradient of parameter \"first.weight\" of unit \"first\", which the module does not have: gradients "
        "are "
        "reduced to those of the shards. Give fsdp.parameters() to optimizers, and call fsdp.zero_grad() and "
        "fsdp.clip_grad_norm_()";
    EXPECT_THAT(error_of<c10::Error>([&] { net->zero_grad(); }), HasSubstr(text));
    EXPECT_THAT(error_of<c10::Error>([&] { torch::nn::utils::clip_grad_norm_(net->parameters(), 1); }),
                HasSubstr(text));
  });
}

TEST(FsdpRefuses, ElementsOfAFreedParameter) {
  alone([](RankContext&, Mlp& net, auto& fsdp) {
    const std::string text =
        "FSDP: the parameter \"third.bias\" of unit \"third\" is asked for its elements, which are not here: it is "
        "sharded.";
    const auto bias = net->third->bias;
    EXPECT_THAT(error_of<c10::Error>([&] { bias.data_ptr(); }), HasSubstr(text));
    EXPECT_THAT(error_of<c10::Error>([&] { bias.accessor<double, 1>(); }), HasSubstr(text));
    EXPECT_THAT(error_of<c10::Error>([&] {
                  std::ostringstream out;
                  torch::save(std::vector<at::Tensor>{bias}, out);
                }),
                HasSubstr("\"third.bias\" of unit \"third\""));
    static_cast<void>(fsdp);
  });
}

// In another thread, FSDP sees no operators, and the parameter has no memory.
TEST(FsdpRefuses, ThreadsOfTheRank) {
  alone([](RankContext&, Mlp& net, auto& fsdp) {
    std::string of_operator, of_forward;
    std::thread([&] {
      of_operator = error_of<c10::Error>([&] { net->first->weight.sum(); });
      of_forward = error_of<c10::Error>([&] { fsdp(batch_of(0, 0)); });
    }).join();
    EXPECT_THAT(of_operator, HasSubstr("parameter \"first.weight\" of unit \"first\" is asked for its elements"));
    EXPECT_THAT(of_forward, HasSubstr("FSDP: forward() is called in a thread that did not make the "
                                      "FullyShardedDataParallel"));
  });
}

TEST(FsdpRefuses, ChangesInPlace) {
  alone([](RankContext&, Mlp& net, auto& fsdp) {
    const auto error = error_of<c10::Error>([&] {
      fsdp.forward_with([&] {
        const at::NoGradGuard no_grad;
        net->first->weight.mul_(2);
        return at::ones({1});
      });
    });
    EXPECT_THAT(error, HasSubstr("FSDP: aten::mul_ changes parameter \"first.weight\" of unit \"first\" in place, and "
                                 "the change would be lost when its memory is freed"));
    train(fsdp);  // training goes on
  });
}

TEST(FsdpRefuses, StepBetweenForwardAndBackward) {
  alone([](RankContext&, Mlp&, auto& fsdp) {
    const auto loss = fsdp(batch_of(0, 0)).square().sum();
    {
      const at::NoGradGuard no_grad;
      for (auto& shard : fsdp.parameters()) shard.add_(1);
    }
    EXPECT_THAT(error_of<c10::Error>([&] { loss.backward(); }),
                HasSubstr("FSDP: the shards of unit \"third\" were changed between a forward and its backward"));
  });
}

// The older of two autograd graphs was recorded before the step. Its backward would find the values from after the
// step.
TEST(FsdpRefuses, BackwardOfAForwardBeforeTheStep) {
  for (const bool reshard : {true, false}) {
    run_ranks({.ranks = 1}, [reshard](RankContext& ctx) {
      Mlp net;
      fill(*net);
      FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear, .reshard_after_forward = reshard});
      const auto old = fsdp(batch_of(0, 0)).square().sum();
      {
        const at::NoGradGuard no_grad;
        for (auto& shard : fsdp.parameters()) shard.add_(1);
      }
      const auto recent = fsdp(batch_of(0, 0)).square().sum();
      recent.backward();
      EXPECT_THAT(error_of<c10::Error>([&] { old.backward({}, /*retain_graph=*/true); }),
                  HasSubstr("FSDP: the shards of unit \"third\" were changed between a forward and its backward"));
      fsdp.zero_grad();
      EXPECT_THAT(error_of<c10::Error>([&] { (fsdp(batch_of(0, 0)).sum() + old).backward(); }),
                  HasSubstr("were changed between a forward and its backward"));
    });
  }
}

TEST(FsdpRefuses, TheNextStepBehindAFailedBackward_UntilZeroGrad) {
  alone([](RankContext&, Mlp& net, auto& fsdp) {
    bool fails = true;
    const auto failing = [&] {
      const auto x = fsdp.forward_with(
          [&](const at::Tensor& input) {
            const auto hidden = net->first(input);
            hidden.register_hook([&](const at::Tensor&) {
              if (fails) throw std::runtime_error("no gradient today");
            });
            return net->third(net->second(hidden));
          },
          batch_of(0, 0));
      x.sum().backward();
    };
    EXPECT_THAT(error_of<std::runtime_error>(failing), HasSubstr("no gradient today"));
    const std::string text =
        "FSDP: forward() comes after a backward that did not come to its end, and some gradients are lost. Call "
        "zero_grad() and begin the step again";
    EXPECT_THAT(error_of<c10::Error>(failing), HasSubstr(text));
    fails = false;
    fsdp.zero_grad();
    failing();
    const auto gradients = gradient_copies(fsdp.parameters());
    fsdp.zero_grad();
    failing();
    EXPECT_THAT(gradient_copies(fsdp.parameters()), BitEqual(gradients));
  });
}

TEST(FsdpRefuses, GradientsOfGradients) {
  alone([](RankContext&, Mlp&, auto& fsdp) {
    const auto loss = fsdp(batch_of(0, 0)).square().sum();
    EXPECT_THAT(error_of<c10::Error>([&] { loss.backward({}, true, /*create_graph=*/true); }),
                HasSubstr("FSDP: backward() with create_graph: the gradient of parameter"));
  });
}

TEST(FsdpRefuses, ChangedModules) {
  alone([](RankContext&, Mlp& net, auto& fsdp) {
    net->register_parameter("late", at::zeros({2}));
    EXPECT_THAT(error_of<c10::Error>([&] { train(fsdp); }),
                HasSubstr("FSDP: the module has other parameters than when it was sharded: 6 then, 7 now"));
  });
  alone([](RankContext&, Mlp& net, auto& fsdp) {
    const auto change = [&] { net->first->bias.set_data(at::zeros({16}, at::kDouble)); };
    EXPECT_THAT(error_of<c10::Error>(change), HasSubstr("uses parameter \"first.bias\" of unit \"first\" outside"));
    std::thread(change).join();  // in a thread, where FSDP does not see it
    EXPECT_THAT(error_of<c10::Error>([&] { train(fsdp); }),
                HasSubstr("FSDP: somebody has given parameter \"first.bias\" of unit \"first\" other elements since it "
                          "was sharded"));
  });
}

template <class Net>
std::string refusal_of(Net net, FullyShardedOptions options = {}) {
  std::string text;
  run_ranks({.ranks = 1}, [&](RankContext& ctx) {
    text = error_of<c10::ValueError>([&] { FullyShardedDataParallel(net, ctx.group(), options); });
  });
  return text;
}

struct OfTensorsImpl : torch::nn::Module {
  explicit OfTensorsImpl(std::vector<at::Tensor> tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) register_parameter("p" + std::to_string(i), tensors[i]);
  }
  at::Tensor forward() { return {}; }
};

std::string refusal_of_tensors(std::vector<at::Tensor> tensors) {
  return refusal_of(std::make_shared<OfTensorsImpl>(std::move(tensors)));
}

TEST(FsdpRefuses, ParametersThatCannotBeSharded) {
  EXPECT_THAT(refusal_of_tensors({at::zeros({2}), at::zeros({2}, at::kDouble)}),
              HasSubstr("FSDP: the root unit has parameter \"p0\" of dtype Float and \"p1\" of dtype Double. One call "
                        "gathers both, so make them alike, or put them into units of their own."));
  EXPECT_THAT(refusal_of_tensors({at::zeros({})}), HasSubstr("FSDP: parameter \"p0\" is a scalar and has no rows"));
  EXPECT_THAT(refusal_of_tensors({at::zeros({2, 3}).t()}),
              HasSubstr("FSDP: parameter \"p0\" of sizes [3, 2] and strides [1, 3] is not contiguous"));
  EXPECT_THAT(refusal_of_tensors({at::zeros({4, 2}).narrow(0, 1, 2).detach()}),
              HasSubstr("FSDP: parameter \"p0\" is a part of other memory: it takes 16 bytes from byte 8 on of 32"));
  const auto shared = at::zeros({2});
  EXPECT_THAT(refusal_of_tensors({shared, shared.detach()}),
              HasSubstr("FSDP: parameters \"p0\" and \"p1\" are two tensors in the same memory"));
  EXPECT_THAT(refusal_of_tensors({at::zeros({2}, at::kMeta)}),
              HasSubstr("FSDP: parameter \"p0\" is on the meta device and has no values to shard"));
  EXPECT_THAT(refusal_of(torch::nn::Embedding(torch::nn::EmbeddingOptions(4, 2).sparse(true))),
              HasSubstr("FSDP: parameter \"weight\" is sparse, or belongs to an embedding with sparse gradients"));
}

TEST(FsdpRefuses, DtypesThatHaveNoGradients) {
  run_ranks({.ranks = 1}, [](RankContext& ctx) {
    const rehearse::FullyShardedMixedPrecision dtypes{.param_dtype = at::kBFloat16, .reduce_dtype = at::kInt};
    EXPECT_THAT(
        error_of<c10::ValueError>([&] { FullyShardedDataParallel(Mlp(), ctx.group(), {.mixed_precision = dtypes}); }),
        HasSubstr("FSDP: mixed_precision.reduce_dtype is Int; it must be a floating-point dtype"));
  });
}

TEST(FsdpRefuses, UnitsThatMakeNoSense) {
  EXPECT_THAT(refusal_of(Mlp(), {.units = UnitPolicy::named({"fourth"})}),
              HasSubstr("FSDP: units has \"fourth\", but no module has that name."));
  EXPECT_THAT(
      refusal_of(Mlp(), {.parameters_to_ignore = {"fourth.bias"}}),
      HasSubstr("FSDP: parameters_to_ignore has \"fourth.bias\", but the module has no parameter of that name."));
  struct TiedImpl : torch::nn::Module {
    TiedImpl()
        : a(register_module("a", torch::nn::Linear(2, 2))), b(register_module("b", std::make_shared<Module>("b"))) {
      b->register_parameter("weight", a->weight);
    }
    at::Tensor forward() { return {}; }
    torch::nn::Linear a;
    std::shared_ptr<Module> b;
  };
  EXPECT_THAT(
      refusal_of(std::make_shared<TiedImpl>(), {.units = UnitPolicy::named({"a", "b"})}),
      HasSubstr("FSDP: parameter \"a.weight\" of unit \"a\" is also \"b.weight\" of unit \"b\". Choose units so "
                "that one of them has both."));
  EXPECT_THAT(error_of<c10::ValueError>([] { UnitPolicy::of_size(0); }),
              HasSubstr("UnitPolicy::of_size() was given 0 elements; a unit has 1 or more"));
}

TEST(FsdpRefuses, ASecondOneOverTheSameModule) {
  alone([](RankContext& ctx, Mlp& net, auto&) {
    EXPECT_THAT(
        error_of<c10::ValueError>([&] { FullyShardedDataParallel(net, ctx.group(), {.units = kEachLinear}); }),
        HasSubstr("FSDP: parameter \"first.weight\" has no memory: another FullyShardedDataParallel has sharded "
                  "it already"));
  });
}

TEST(FsdpRefuses, GroupsThatThisRankIsNotIn) {
  run_ranks({.ranks = 3}, [](RankContext& ctx) {
    const auto group = ctx.new_group({0, 2}, "pair");
    const rehearse::DeviceMesh mesh(ctx, {2}, {"dp"}, {.ranks = {0, 2}}), cube(ctx, {1, 1, 3});
    EXPECT_THAT(error_of<c10::ValueError>([&] { FullyShardedDataParallel(Mlp(), cube); }),
                HasSubstr("was given a mesh of 3 dimensions; it takes one, for shards, or two"));
    if (ctx.rank() != 1) return;
    EXPECT_THAT(error_of<c10::Error>([&] { FullyShardedDataParallel(Mlp(), group); }),
                HasSubstr("FullyShardedDataParallel was given an empty process group: is this rank a member?"));
    EXPECT_THAT(error_of<c10::ValueError>([&] { FullyShardedDataParallel(Mlp(), mesh); }),
                HasSubstr("FullyShardedDataParallel was given a mesh in which rank 1 of the world is not"));
  });
}

TEST(FsdpRefuses, OtherModelsOnOtherRanks) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    auto net = double_linear(6, 3 + ctx.rank());
    EXPECT_THAT(error_of<c10::Error>([&] { FullyShardedDataParallel(net, ctx.group()); }), HasSubstr("params[0] in"));
  });
}

// Two parameters of one size, so that the sizes in a collective cannot distinguish them.
struct TwinsImpl : torch::nn::Module {
  explicit TwinsImpl(bool swapped) {
    for (const char* name : {swapped ? "q" : "p", swapped ? "p" : "q"}) {
      register_parameter(name, at::rand({4, 4}, at::kDouble));
    }
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto parameters = named_parameters();
    return x.matmul(parameters["p"]).tanh().matmul(parameters["q"]);
  }
};
TORCH_MODULE(Twins);

TEST(FsdpRefuses, OtherParametersOfTheSameSizes) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    const bool is_second = ctx.rank() == 1;
    const auto refusal_of = [&](Twins net, rehearse::FullyShardedOptions options) {
      return error_of<c10::Error>([&] { FullyShardedDataParallel(net, ctx.group(), std::move(options)); });
    };
    const auto text = [&](const char* name) {
      return "[" + std::to_string(ctx.rank()) + "]: params[0] in " + (is_second ? "this process" : "process 1") +
             " with the same sizes, strides and dtype differs from that of process 0 in its names, its unit, or "
             "whether it requires grad. Its name here is " +
             name + ".";
    };
    EXPECT_THAT(refusal_of(Twins(is_second), {}), HasSubstr(text(is_second ? "q" : "p")));
    EXPECT_THAT(refusal_of(Twins(false), {.parameters_to_ignore = {is_second ? "p" : "q"}}),
                HasSubstr(text(is_second ? "q" : "p")));
    Twins frozen(false);
    frozen->named_parameters()[is_second ? "p" : "q"].set_requires_grad(false);
    EXPECT_THAT(refusal_of(frozen, {}), HasSubstr(text("p")));
  });
}

// Without init_sync, nothing compares the models at construction. But the labels of the calls name the parameters, so
// the first call is a mismatch.
TEST(FsdpRefuses, OtherParametersOfTheSameSizesWithoutInitSync) {
  rehearse::World world({.ranks = 2});
  const auto report = world.run([](RankContext& ctx) {
    Twins net(ctx.rank() == 1);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.init_sync = false});
    fsdp(at::ones({1, 4}, at::kDouble));
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::mismatch);
  EXPECT_THAT(report.headline, HasSubstr("FSDP the root unit: parameters q, p"));
  EXPECT_THAT(report.headline, HasSubstr("FSDP the root unit: parameters p, q"));
}

TEST(FsdpRefuses, ClippingByOtherNorms) {
  rehearse::World world({.ranks = 2});
  const auto report = world.run([](RankContext& ctx) {
    Twins net(false);
    FullyShardedDataParallel fsdp(net, ctx.group());
    fsdp(at::ones({1, 4}, at::kDouble)).sum().backward();
    fsdp.clip_grad_norm_(1.0, ctx.rank() == 1 ? 1.0 : 2.0);
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::mismatch);
  EXPECT_THAT(report.headline, HasSubstr("FSDP: gradient norm of type 1, at most 1"));
}

}  // namespace
