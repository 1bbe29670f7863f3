// SPDX-License-Identifier: BSD-3-Clause
// Code that reads state that no guard sees, and watch(), which adds a guard for a value.
#include <cmath>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <torch/nn/module.h>

#include <rehearse/compile/errors.h>
#include <rehearse/compile/watch.h>
#include <rehearse_internal/libtorch/version.h>

#include "bit_equal.h"
#include "core/compile/recompile_counts.h"

// This code is outside namespace rehearse, because without line tables, messages take the functions of that namespace
// for library code.
namespace user {
namespace {

struct ScaledImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return scale == 1 ? x * 2 : x + 3; }
  int scale = 1;
};
TORCH_MODULE(Scaled);

struct TimesWatched {
  double& factor;
  at::Tensor operator()(const at::Tensor& x) const { return x * rehearse::watch(factor); }
};

}  // namespace
}  // namespace user

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using ::testing::HasSubstr;
using user::Scaled;

template <class Body>
std::string stale_capture_of(Body&& body) {
  try {
    body();
  } catch (const StaleCapture& error) {
    return error.what();
  }
  return "no error";
}

const at::Tensor kInput = at::arange(6).view({2, 3});

TEST(Verify, FirstHitFindsAChangedMember) {
  Scaled net;
  auto compiled = compile(net, {.backend = "eager"});
  EXPECT_THAT(compiled(kInput), BitEqual(kInput * 2));
  net->scale = 2;
  const std::string told = stale_capture_of([&] { compiled(kInput); });
  EXPECT_THAT(told, HasSubstr("it was torch.ops.aten.mul.Scalar at "));
  EXPECT_THAT(told, HasSubstr("and is torch.ops.aten.add.Scalar at "));
  EXPECT_THAT(told, HasSubstr("rehearse::watch()"));
  EXPECT_EQ(compiled.stats().compiles, 1);
}

// In each call, index_put_() makes a new tensor from the number that it gets. If the number is the same, verification
// sees no change. There are two indices, because with one index LibTorch fills with the number since 2.15.
TEST(Verify, NumbersThatBecomeTensorsAreThemselves) {
  double number = 7;
  const at::Tensor zero = at::zeros({1}, at::kLong);
  auto compiled = compile([&](const at::Tensor& x) {
    at::Tensor y = x.clone();
    y.index_put_({at::ones({1}, at::kLong)}, at::scalar_tensor(1.5).view({1}));
    y.index_put_({zero, zero}, number);
    return y;
  });
  compiled(kInput.to(at::kFloat));
  EXPECT_EQ(compiled(kInput.to(at::kFloat)).sum().item<double>(), 7 + 1 + 2 + 1.5 * 3);
  EXPECT_EQ(compiled.stats().verifications, 1);

  auto unknown = compile([&](const at::Tensor& x) {
    at::Tensor y = x.clone();
    y.index_put_({zero, zero}, std::nan(""));
    return y;
  });
  for (int call = 0; call < 2; ++call) EXPECT_EQ(unknown(kInput.to(at::kFloat)).isnan().sum().item<int>(), 1);

  auto stale = compile([&](const at::Tensor& x) {
    at::Tensor y = x.clone();
    y.index_put_({zero, zero}, number);
    return y;
  });
  stale(kInput.to(at::kFloat));
  number = 8;
  EXPECT_THAT(stale_capture_of([&] { stale(kInput.to(at::kFloat)); }), HasSubstr("uses, is another tensor now"));
}

// LibTorch asks whether a tensor without dimensions shares the memory of the one that it is put into, since 2.15.
TEST(Verify, AScalarTensorForAnIndexIsRefusedSince215) {
  auto compiled = compile([](const at::Tensor& x) {
    at::Tensor y = x.clone();
    y.index_put_({at::ones({1}, at::kLong)}, at::scalar_tensor(1.5));
    return y;
  });
  EXPECT_EQ(compiled(kInput.to(at::kFloat)).sum().item<double>(), 0 + 1 + 2 + 1.5 * 3);
  const bool is_refused = libtorch::Minors{.since = 15}.contain(libtorch::kMinor);
  EXPECT_EQ(compiled.stats().compiles, is_refused ? 0 : 1);
  const std::string refusal = compiled.explain().refusal;
  EXPECT_EQ(refusal.substr(0, refusal.find('(')), is_refused ? "The memory of a fake tensor was asked for " : "");
}

TEST(Verify, FirstHitLooksOnce) {
  Scaled net;
  auto compiled = compile(net, {.backend = "eager"});
  compiled(kInput);
  compiled(kInput);
  net->scale = 2;
  EXPECT_THAT(compiled(kInput), BitEqual(kInput * 2));
  EXPECT_EQ(compiled.stats().verifications, 1);

  auto never = compile(net, {.backend = "eager", .verify = Verify::Never});
  EXPECT_THAT(never(kInput), BitEqual(kInput + 3));
  net->scale = 1;
  EXPECT_THAT(never(kInput), BitEqual(kInput + 3));
  EXPECT_EQ(never.stats().verifications, 0);
}

TEST(Verify, AlwaysFollowsTheMember) {
  Scaled net;
  auto compiled = compile(net, {.backend = "eager", .verify = Verify::Always});
  for (const int scale : {1, 2, 1, 2, 2}) {
    net->scale = scale;
    EXPECT_THAT(compiled(kInput), BitEqual(net->forward(kInput)));
  }
  EXPECT_EQ(compiled.stats().compiles, 2);
}

int global_scale = 1;

struct TensorMemberImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return x + offset; }
  at::Tensor offset = at::ones({3});
};
TORCH_MODULE(TensorMember);

TEST(Verify, FirstHitFindsHiddenStateOfAnyKind) {
  int captured = 1;
  auto by_reference = compile([&](const at::Tensor& x) { return x * captured; }, {.backend = "eager"});
  auto global = compile([](const at::Tensor& x) { return x * global_scale; }, {.backend = "eager"});
  auto counted = compile([&](const at::Tensor& x) { return std::tuple(x * 2, captured); }, {.backend = "eager"});
  TensorMember net;
  auto replaced = compile(net, {.backend = "eager"});
  by_reference(kInput), global(kInput), counted(kInput), replaced(kInput);
  captured = 2, global_scale = 2, net->offset = at::zeros({3});
  EXPECT_THAT(stale_capture_of([&] { by_reference(kInput); }), HasSubstr("mul"));
  EXPECT_THAT(stale_capture_of([&] { global(kInput); }), HasSubstr("mul"));
  EXPECT_THAT(stale_capture_of([&] { counted(kInput); }),
              HasSubstr("its results that are no tensors were 1, and are 2 now"));
  EXPECT_THAT(stale_capture_of([&] { replaced(kInput); }), HasSubstr("is another tensor now"));
  EXPECT_THAT(replaced.explain().text(), HasSubstr("kept by reference"));
  global_scale = 1;
}

TEST(Watch, AnotherValueCompilesAnew) {
  double scale = 2;
  const user::TimesWatched scaled{scale};
  auto compiled = compile(scaled, {.backend = "eager"});
  const std::vector<std::tuple<at::Tensor>> call = {{kInput}};
  EXPECT_EQ(compiles(compiled, scaled, call), std::vector{1});
  scale = 3;
  EXPECT_EQ(compiles(compiled, scaled, call), std::vector{1});
  scale = 2;
  EXPECT_EQ(compiles(compiled, scaled, call), std::vector{0});
  const GuardFailure failure = compiled.explain().recompiles.at(0).failures.at(0);
  EXPECT_EQ(failure.expected, "2");
  EXPECT_EQ(failure.found, "3");
  EXPECT_THAT(failure.line, HasSubstr("verify_test.cpp"));
}

TEST(Watch, TensorsCountByIdentity) {
  at::Tensor offset = at::ones({3});
  const auto shifted = [&](const at::Tensor& x) { return x + watch(offset); };
  auto compiled = compile(shifted, {.backend = "eager"});
  const std::vector<std::tuple<at::Tensor>> call = {{kInput}};
  EXPECT_EQ(compiles(compiled, shifted, call), std::vector{1});
  offset.add_(1);
  EXPECT_EQ(compiles(compiled, shifted, call), std::vector{0});
  offset = at::zeros({3});
  EXPECT_EQ(compiles(compiled, shifted, call), std::vector{1});
}

// A local variable of the function no longer exists in the next call.
TEST(Watch, OwnVariablesAreRefused) {
  auto compiled = compile([](const at::Tensor& x) {
    const int own = 2;
    return x * watch(own);
  });
  EXPECT_THROW(compiled(kInput), CompileError);
  EXPECT_EQ(compiled.stats().compiles, 0);
}

}  // namespace
}  // namespace rehearse::compiler
