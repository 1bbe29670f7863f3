// SPDX-License-Identifier: BSD-3-Clause
// Twelve functions that depend on state that no guard sees, in the three modes of CompileOptions::verify.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/errors.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/exec/this_rank.h>

#include "bit_equal.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using HiddenFunction = std::function<at::Tensor(const at::Tensor&)>;

// A function and its state. Two objects of one case share the state only if it belongs to the process: a global, a
// file, ...
struct HiddenState {
  HiddenFunction function;
  std::function<void(int)> set;  // selects state 0, 1, ...
};

struct HiddenCase {
  const char* name;
  std::function<HiddenState()> make;
  bool changes_by_itself = false;
};

int global_addend = 0;
thread_local int addend_of_thread = 0;

int& static_addend() {
  static int addend = 0;
  return addend;
}

struct WithMembers {
  at::Tensor forward(const at::Tensor& x) const { return x + addend; }
  int addend = 0;
};

struct WithTensor {
  at::Tensor forward(const at::Tensor& x) const { return x + offset; }
  at::Tensor offset = at::zeros({3});
};

std::string path_of_file() { return ::testing::TempDir() + "hidden_state_" + std::to_string(::getpid()); }

HiddenState member() {
  const auto object = std::make_shared<WithMembers>();
  return {[object](const at::Tensor& x) { return object->forward(x); }, [object](int k) { object->addend = k; }};
}

HiddenState capture_by_reference() {
  const auto owner = std::make_shared<int>(0);
  int& addend = *owner;
  return {[&addend](const at::Tensor& x) { return x + addend; }, [owner](int k) { *owner = k; }};
}

HiddenState global() {
  return {[](const at::Tensor& x) { return x + global_addend; }, [](int k) { global_addend = k; }};
}

HiddenState static_variable() {
  return {[](const at::Tensor& x) { return x + static_addend(); }, [](int k) { static_addend() = k; }};
}

HiddenState replaced_tensor_member() {
  const auto object = std::make_shared<WithTensor>();
  return {[object](const at::Tensor& x) { return object->forward(x); },
          [object](int k) { object->offset = at::full({3}, k); }};
}

HiddenState environment_variable() {
  constexpr const char* kName = "REHEARSE_HIDDEN_STATE_TEST";
  return {[](const at::Tensor& x) { return x + std::atoi(std::getenv(kName)); },
          [](int k) { ::setenv(kName, std::to_string(k).c_str(), 1); }};
}

HiddenState clock() {
  return {[](const at::Tensor& x) { return x + exec::this_rank::now().time_since_epoch().count(); },
          [](int) { exec::this_rank::sleep_for(std::chrono::seconds(1)); }};
}

HiddenState counter() {
  const auto calls = std::make_shared<int>(0);
  return {[calls](const at::Tensor& x) { return x + ++*calls; }, [](int) {}};
}

HiddenState thread_local_variable() {
  return {[](const at::Tensor& x) { return x + addend_of_thread; }, [](int k) { addend_of_thread = k; }};
}

HiddenState file() {
  const auto read = [](const at::Tensor& x) {
    int addend = 0;
    std::ifstream(path_of_file()) >> addend;
    return x + addend;
  };
  return {read, [](int k) { std::ofstream(path_of_file()) << k; }};
}

HiddenState size_of_container() {
  const auto steps = std::make_shared<std::vector<int>>();
  const auto function = [steps](const at::Tensor& x) {
    at::Tensor y = x * 2;
    for (const int step : *steps) y = y + step;
    return y;
  };
  return {function, [steps](int k) { steps->assign(static_cast<std::size_t>(k), 5); }};
}

HiddenState target_of_shared_ptr() {
  struct Holder {
    std::shared_ptr<const int> addend = std::make_shared<const int>(0);
  };
  const auto holder = std::make_shared<Holder>();
  return {[holder](const at::Tensor& x) { return x + *holder->addend; },
          [holder](int k) { holder->addend = std::make_shared<const int>(k); }};
}

const std::vector<HiddenCase>& cases() {
  static const std::vector<HiddenCase> all = {{"Member", member},
                                              {"CaptureByReference", capture_by_reference},
                                              {"Global", global},
                                              {"Static", static_variable},
                                              {"ReplacedTensorMember", replaced_tensor_member},
                                              {"EnvironmentVariable", environment_variable},
                                              {"Clock", clock, true},
                                              {"Counter", counter, true},
                                              {"ThreadLocal", thread_local_variable},
                                              {"File", file},
                                              {"SizeOfContainer", size_of_container},
                                              {"TargetOfSharedPtr", target_of_shared_ptr}};
  return all;
}

const at::Tensor kFloats = at::arange(6, at::kFloat).view({2, 3});

// Runs in a world of one rank, whose clock is virtual.
class HiddenStates : public ::testing::TestWithParam<HiddenCase> {
 protected:
  template <class Body>
  void run(const Body& body) {
    World world({.ranks = 1});
    const Report report = world.run([&](RankContext&) { body(GetParam().make()); });
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    std::remove(path_of_file().c_str());
  }
};
INSTANTIATE_TEST_SUITE_P(Of, HiddenStates, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// Always: each call gives eager mode's result, whether it compiles, reuses a graph, or exceeds the recompile limit.
TEST_P(HiddenStates, AlwaysIsRightInEveryCall) {
  for (const std::size_t limit : {8U, 2U, 1U}) {
    run([&](const HiddenState& mine) {
      const HiddenState eager = GetParam().make();
      auto compiled = compile(mine.function, {.verify = Verify::Always, .recompile_limit = limit});
      for (const int state : {0, 1, 0, 2, 2, 0, 3}) {
        mine.set(state);
        eager.set(state);
        EXPECT_THAT(compiled(kFloats), BitEqual(eager.function(kFloats))) << "state " << state << ", limit " << limit;
      }
      if (GetParam().changes_by_itself || limit < 8) return;
      // In the case ReplacedTensorMember, each set() makes a new tensor object, which counts as another tensor.
      EXPECT_EQ(compiled.stats().compiles, std::string(GetParam().name) == "ReplacedTensorMember" ? 7 : 4);
    });
  }
}

// FirstHit: the first hit throws, and compiles nothing. The error names what the capture had at the first difference
// (an operator with its line, or the end of the function), and what is there now. If an operator uses another tensor
// than at the capture, the error names this operator.
TEST_P(HiddenStates, FirstHitTellsWhatHasChanged) {
  run([&](const HiddenState& hidden) {
    auto compiled = compile(hidden.function);
    hidden.set(0);
    compiled(kFloats);
    hidden.set(1);
    try {
      compiled(kFloats);
      ADD_FAILURE() << "it was not seen";
    } catch (const StaleCapture& error) {
      const std::string told = error.what();
      const std::string add = "torch.ops.aten.add.Scalar at [^ ]*hidden_state_test.cpp:[0-9]+";
      if (std::string(GetParam().name) == "ReplacedTensorMember") {
        EXPECT_THAT(told, ContainsRegex("which torch.ops.aten.add.Tensor at [^ ]*hidden_state_test.cpp:[0-9]+ uses"));
      } else if (std::string(GetParam().name) == "SizeOfContainer") {
        EXPECT_THAT(told, ContainsRegex("it was the end of the function, and is " + add + " now"));
      } else {
        const std::string other = R"(torch.ops.aten.add.Scalar\(%arg0, [-0-9]+\) at [^ ]*hidden_state_test.cpp:[0-9]+)";
        EXPECT_THAT(told, ContainsRegex("it was " + other + ", and is " + other + " now"));
      }
      EXPECT_THAT(told, HasSubstr("rehearse::watch()"));
    }
    EXPECT_EQ(compiled.stats().compiles, 1);
  });
}

// Never: the graph serves every call, whatever the code would do now, and the code does not run.
TEST_P(HiddenStates, NeverServesWhatWasCompiled) {
  run([&](const HiddenState& hidden) {
    auto compiled = compile(hidden.function, {.verify = Verify::Never});
    hidden.set(0);
    const at::Tensor first = compiled(kFloats).clone();
    for (const int state : {1, 2}) {
      hidden.set(state);
      EXPECT_THAT(compiled(kFloats), BitEqual(first));
    }
    EXPECT_EQ(compiled.stats().hits, 2);
    EXPECT_EQ(compiled.stats().verifications, 0);
  });
}

}  // namespace
}  // namespace rehearse::compiler
