// SPDX-License-Identifier: BSD-3-Clause
// Verification of code that reads data, of code that no graph can hold, and of models. For models, verification must
// raise no false alarm.
#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/eager_region.h>
#include <rehearse/compile/errors.h>

#include "bit_equal.h"
#include "models/attention.h"
#include "models/bert.h"
#include "models/custom.h"
#include "models/symbols.h"
#include "models/toy.h"
#include "models/transformer.h"

// This code is outside namespace rehearse, because without line tables, messages take the functions of that namespace
// for library code.
namespace {

// A member that no guard sees selects what the function does.
enum class Way { Plain, Reads, HasRegion, AsksForGradient };

struct Chosen {
  Way way = Way::Plain;
  int runs = 0;
};

auto many_ways(Chosen& chosen) {
  return [&chosen](const at::Tensor& x) {
    ++chosen.runs;
    const at::Tensor y = x * 2;
    if (chosen.way == Way::Reads) return (y.sum() > 10).item<bool>() ? y + 1 : y - 1;
    if (chosen.way == Way::HasRegion) return rehearse::eager_region([](const at::Tensor& t) { return t.exp(); }, y) + y;
    if (chosen.way == Way::AsksForGradient) {
      const at::Tensor leaf = x.detach().clone().set_requires_grad(true);
      return torch::autograd::grad({(leaf * leaf).sum()}, {leaf})[0];
    }
    return y.relu() + x;
  };
}

}  // namespace

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

std::string stale_capture_told(const std::function<void()>& body) {
  try {
    body();
  } catch (const StaleCapture& error) {
    return error.what();
  }
  return "no error";
}

TEST(VerifyChanges, FirstHitTellsOfReadsRegionsAndRefusals) {
  for (const auto& [way, expected] : std::vector<std::pair<Way, std::string>>{
           {Way::Reads,
            "it was torch.ops.aten.relu.default at [^ ]*verify_changes_test.cpp:[0-9]+, and is "
            "torch.ops.aten.sum.default at "},
           {Way::HasRegion, "and is an eager region at [^ ]*verify_changes_test.cpp:"},
           {Way::AsksForGradient, "cannot be captured any more .backward.. or grad.. is called"}}) {
    for (const bool fullgraph : {false, true}) {
      Chosen chosen;
      auto compiled = compile(many_ways(chosen), {.fullgraph = fullgraph});
      compiled(at::ones({2}));
      chosen.way = way;
      const std::string told = stale_capture_told([&] { compiled(at::ones({2})); });
      EXPECT_THAT(told, ContainsRegex(expected));
      EXPECT_THAT(told, HasSubstr("verify_changes_test.cpp:"));
      chosen.way = Way::Plain;
      EXPECT_THAT(compiled(at::ones({2})), BitEqual(at::full({2}, 3.0)));
    }
  }
}

TEST(VerifyChanges, FirstHitTellsOfAReadThatIsGone) {
  Chosen chosen{.way = Way::Reads};
  auto compiled = compile(many_ways(chosen));
  compiled(at::ones({2}));
  chosen.way = Way::Plain;
  const std::string told = stale_capture_told([&] { compiled(at::ones({2})); });
  EXPECT_THAT(told, ContainsRegex("it was torch.ops.aten.sum.default at [^ ]*verify_changes_test.cpp:[0-9]+, and is "
                                  "torch.ops.aten.relu.default at [^ ]*verify_changes_test.cpp:[0-9]+ now"));
}

TEST(VerifyChanges, AlwaysGoesAlongWithReadsAndRegions) {
  for (const std::size_t limit : {8U, 2U, 1U}) {
    for (const char* backend : {"eager", "aot_eager"}) {
      Chosen chosen, chosen_eager;
      const auto eager = many_ways(chosen_eager);
      auto compiled =
          compile(many_ways(chosen), {.backend = backend, .verify = Verify::Always, .recompile_limit = limit});
      const auto step = [&](Way way, double value) {
        chosen.way = chosen_eager.way = way;
        const at::Tensor x = at::full({3}, value);
        EXPECT_THAT(compiled(x), BitEqual(eager(x))) << "way " << static_cast<int>(way) << ", limit " << limit;
        EXPECT_EQ(chosen.runs, chosen_eager.runs);
      };
      for (const Way way : {Way::Plain, Way::Reads, Way::Plain, Way::HasRegion, Way::Reads, Way::Plain}) {
        for (const double value : {1.0, 9.0, 1.0}) step(way, value);
      }
      if (limit == 8) {  // compiled: Plain, both branches of Reads, and HasRegion
        EXPECT_EQ(compiled.stats().compiles, 4);
      }
      EXPECT_EQ(compiled.explain().refusal, "");
    }
  }
}

// If a call reaches code that no graph can hold, the call finishes in eager mode. With Always, all later calls run in
// eager mode, too.
TEST(VerifyChanges, AlwaysGoesAlongWithWhatCannotBeCaptured) {
  Chosen chosen, chosen_eager;
  const auto eager = many_ways(chosen_eager);
  auto compiled = compile(many_ways(chosen), {.verify = Verify::Always});
  for (const Way way : {Way::Plain, Way::AsksForGradient, Way::Plain, Way::Reads}) {
    chosen.way = chosen_eager.way = way;
    EXPECT_THAT(compiled(at::ones({3})), BitEqual(eager(at::ones({3}))));
  }
  EXPECT_THAT(compiled.explain().refusal, HasSubstr("backward() or grad()"));
}

// If the code has changed, Always compiles another graph for the sizes of the current call, which differ from those of
// the capture.
TEST(VerifyChanges, AlwaysCompilesForTheSizesOfTheCall) {
  bool flat = false;
  const auto function = [&flat](const at::Tensor& x) { return flat ? x.reshape({x.size(0) * x.size(1)}) : x * 2; };
  auto compiled = compile(function, {.dynamic = true, .verify = Verify::Always});
  for (const auto& [rows, columns] : {std::pair{4, 5}, std::pair{6, 6}, std::pair{3, 7}}) {
    for (const bool now : {false, true, false}) {
      flat = now;
      const at::Tensor x = at::randn({rows, columns});
      EXPECT_THAT(compiled(x), BitEqual(function(x))) << rows << " " << columns << " " << now;
    }
  }
}

TEST(VerifyChanges, SizesThatBecomeEqualAreNoChange) {
  const auto plain = [](const at::Tensor& x, const at::Tensor& y) { return x.sum() * y; };
  const auto reading = [](const at::Tensor& x, const at::Tensor& y) {
    return x.sum().item<float>() > 0 ? x.sum() * y : y - 1;
  };
  const auto check = [](auto function, Verify verify) {
    auto compiled = compile(function, {.dynamic = true, .verify = verify});
    for (const auto& [rows, columns] : {std::pair{4, 5}, std::pair{6, 6}, std::pair{3, 7}, std::pair{2, 2}}) {
      const at::Tensor x = at::ones({rows}), y = at::ones({columns});
      EXPECT_THAT(compiled(x, y), BitEqual(function(x, y)));
    }
    EXPECT_EQ(compiled.stats().compiles, 1);
  };
  for (const Verify verify : {Verify::FirstHit, Verify::Always, Verify::Never}) check(plain, verify);
  // The value of a read selects the branch, so another value is no change.
  auto compiled = compile(reading, {.dynamic = true, .verify = Verify::FirstHit});
  for (const auto& [rows, columns] : {std::pair{4, 5}, std::pair{4, 4}, std::pair{4, 7}, std::pair{4, 4}}) {
    const at::Tensor x = at::ones({rows}), y = at::ones({columns});
    EXPECT_THAT(compiled(x, y), BitEqual(reading(x, y)));
  }
}

template <class Net, class... Inputs>
void expect_not_accused(Net net, const std::vector<std::tuple<Inputs...>>& inputs) {
  for (const Verify verify : {Verify::Never, Verify::FirstHit, Verify::Always}) {
    auto compiled = compile(net, {.backend = "eager", .verify = verify});
    for (int turn = 0; turn < 2; ++turn) {
      for (const auto& call : inputs) {
        at::manual_seed(5);
        const at::Tensor expected = std::apply([&](const auto&... x) { return net->forward(x...); }, call);
        at::manual_seed(5);
        EXPECT_THAT(std::apply(compiled, call), BitEqual(expected));
      }
    }
    const CompileStats stats = compiled.stats();
    EXPECT_EQ(stats.eager_calls, 0) << compiled.explain().text();
    EXPECT_EQ(stats.hits + stats.compiles, stats.calls);
    EXPECT_LE(stats.compiles, 3);
    for (const Recompile& recompile : compiled.explain().recompiles) {
      for (const GuardFailure& failure : recompile.failures) EXPECT_NE(failure.source, "the function");
    }
  }
}

using OneInput = std::vector<std::tuple<at::Tensor>>;
using TwoInputs = std::vector<std::tuple<at::Tensor, at::Tensor>>;

TEST(VerifyChanges, NoModelIsAccused) {
  expect_not_accused(
      test::Toy(test::ToyShape{.hidden = 30}),
      OneInput{{at::randn({20, 10})}, {at::randn({20, 10})}, {at::randn({10, 10})}, {at::randn({3, 10})}});
  expect_not_accused(test::Custom(16), TwoInputs{{at::randn({5, 16}), at::randn({5, 16})},
                                                 {at::randn({16, 16}), at::randn({16, 16})},
                                                 {at::randn({3, 16}), at::randn({3, 16})}});
  expect_not_accused(test::NormedAttention(12, 3, 2),
                     OneInput{{at::randn({2, 2, 3, 12})}, {at::randn({2, 2, 5, 12})}, {at::randn({2, 2, 3, 12})}});
  expect_not_accused(
      test::Transformer(),
      OneInput{
          {at::randint(50, {3, 8})}, {at::randint(50, {2, 5})}, {at::randint(50, {6, 6})}, {at::randint(50, {5, 11})}});
  expect_not_accused(test::BertForMaskedLM(test::BertShape::tiny()),
                     OneInput{{at::randint(20, {4, 16})}, {at::randint(20, {3, 9})}, {at::randint(20, {8, 8})}});
  const TwoInputs numbers = {{at::randn({3, 512}), at::ones({2}, at::kLong) * 2},
                             {at::randn({5, 512}), at::ones({2}, at::kLong) * 3},
                             {at::randn({3, 512}), at::ones({2}, at::kLong) * 2}};
  expect_not_accused(test::DirectSplitting(), numbers);
  expect_not_accused(test::IndirectSplitting(), numbers);
  expect_not_accused(test::TortureSplitting(), numbers);
  expect_not_accused(test::NonzeroSplitting(), numbers);
  expect_not_accused(test::SymbolSplitting(), OneInput{{at::randn({3, 512})}, {at::randn({5, 512})}});
  expect_not_accused(test::TwoLinears(), OneInput{{at::randn({2, 3, 768})}, {at::randn({4, 4, 768})}});
  expect_not_accused(test::RandomProduct(), std::vector<std::tuple<>>{{}, {}});
}

// Has effects that verification must not repeat: it draws random numbers, and changes a buffer.
struct DrawingImpl : torch::nn::Module {
  DrawingImpl() : steps(register_buffer("steps", at::zeros({}, at::kLong))) {}
  at::Tensor forward(const at::Tensor& x) {
    steps.add_(1);
    return at::dropout(x, 0.5, /*train=*/true) * steps;
  }
  at::Tensor steps;
};
TORCH_MODULE(Drawing);

TEST(VerifyChanges, VerifyingDoesNothingTwice) {
  for (const Verify verify : {Verify::Never, Verify::FirstHit, Verify::Always}) {
    Drawing net, eager;
    auto compiled = compile(net, {.verify = verify});
    for (int call = 0; call < 4; ++call) {
      const at::Tensor x = at::ones({16}) * call;
      at::manual_seed(call);
      const at::Tensor expected = eager->forward(x);
      const at::Tensor next = at::rand({2});
      at::manual_seed(call);
      EXPECT_THAT(compiled(x), BitEqual(expected));
      EXPECT_THAT(at::rand({2}), BitEqual(next));
      EXPECT_THAT(net->steps, BitEqual(eager->steps));
    }
  }
}

}  // namespace
}  // namespace rehearse::compiler
