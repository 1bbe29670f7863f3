// SPDX-License-Identifier: BSD-3-Clause
// Functions that depend on other state than their arguments. compile() sees some of this state by itself. Only another
// run of the code reveals the rest. COMPILE.md ("What no guard sees") lists both kinds in a table.
// hidden_state_test.cpp has twelve further cases.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/errors.h>
#include <rehearse/compile/watch.h>

#include "bit_equal.h"

namespace rehearse::compiler::forty_states {
namespace {

using rehearse::test::BitEqual;

using Function = std::function<at::Tensor(const at::Tensor&)>;

// A function and its state. `set` selects state 0, 1 or 2; `end` restores state of the process.
struct Stateful {
  Function function;
  std::function<void(int)> set;
  std::function<void()> end = [] {};
};

struct Case {
  const char* name;
  Stateful (*make)();
};

template <class Value>
Stateful with(Value value, std::function<at::Tensor(const Value&, const at::Tensor&)> function,
              std::function<void(Value&, int)> set) {
  const auto state = std::make_shared<Value>(std::move(value));
  return {[=](const at::Tensor& x) { return function(*state, x); }, [=](int k) { set(*state, k); }};
}

torch::nn::Linear linear() {
  at::manual_seed(5);
  return torch::nn::Linear(3, 3);
}

Stateful mode_of_dropout() {
  return with<torch::nn::Dropout>(
      torch::nn::Dropout(0.5), [](const auto& layer, const at::Tensor& x) { return layer.ptr()->forward(x); },
      [](auto& layer, int k) { layer->train(k == 1); });
}

Stateful mode_of_a_child() {
  return with<torch::nn::Sequential>(
      torch::nn::Sequential(torch::nn::BatchNorm1d(3), torch::nn::Dropout(0.5)),
      [](const auto& net, const at::Tensor& x) { return net.ptr()->forward(x); },
      [](auto& net, int k) { net[1]->train(k != 1); });
}

Stateful parameter_in_place() {
  return with<torch::nn::Linear>(
      linear(), [](const auto& layer, const at::Tensor& x) { return layer.ptr()->forward(x); },
      [](auto& layer, int k) {
        const at::NoGradGuard no_grad;
        layer->weight.fill_(k);
      });
}

Stateful data_of_a_parameter() {
  return with<torch::nn::Linear>(
      linear(), [](const auto& layer, const at::Tensor& x) { return layer.ptr()->forward(x); },
      [](auto& layer, int k) {
        layer->weight.set_data(at::full({3 + k, 3}, 0.5)), layer->bias.set_data(at::ones(3 + k));
      });
}

Stateful gradient_of_a_parameter() {
  return with<torch::nn::Linear>(
      linear(), [](const auto& layer, const at::Tensor& x) { return layer.ptr()->forward(x); },
      [](auto& layer, int k) { layer->weight.set_requires_grad(k != 1), layer->bias.set_requires_grad(k != 1); });
}

Stateful contents_of_a_tensor() {
  return with<at::Tensor>(
      at::zeros({3}), [](const auto& offset, const at::Tensor& x) { return x + offset; },
      [](auto& offset, int k) { offset.fill_(k); });
}

Stateful contents_that_are_read() {
  return with<at::Tensor>(
      at::zeros({}), [](const auto& flag, const at::Tensor& x) { return flag.template item<float>() > 0 ? x * 2 : x; },
      [](auto& flag, int k) { flag.fill_(k == 1); });
}

Stateful grad_mode() {
  return {[](const at::Tensor& x) { return at::GradMode::is_enabled() ? x * 2 : x * 3; },
          [](int k) { at::GradMode::set_enabled(k != 1); }, [] { at::GradMode::set_enabled(true); }};
}

Stateful default_dtype() {
  return {[](const at::Tensor& x) { return x + at::ones({3}); },
          [](int k) { c10::set_default_dtype(c10::scalarTypeToTypeMeta(k == 1 ? at::kDouble : at::kFloat)); },
          [] { c10::set_default_dtype(c10::scalarTypeToTypeMeta(at::kFloat)); }};
}

Stateful autocast() {
  return {[](const at::Tensor& x) { return x.matmul(x.t()); },
          [](int k) { at::autocast::set_autocast_enabled(at::kCPU, k == 1); },
          [] { at::autocast::set_autocast_enabled(at::kCPU, false); }};
}

Stateful deterministic_mode() {
  return {[](const at::Tensor& x) { return at::globalContext().deterministicAlgorithms() ? x * 2 : x; },
          [](int k) { at::globalContext().setDeterministicAlgorithms(k == 1, false); },
          [] { at::globalContext().setDeterministicAlgorithms(false, false); }};
}

Stateful attention_back_end() {
  return {[](const at::Tensor& x) { return at::globalContext().userEnabledFlashSDP() ? x * 2 : x; },
          [](int k) { at::globalContext().setSDPUseFlash(k != 1); }, [] { at::globalContext().setSDPUseFlash(true); }};
}

Stateful seed() {
  return {[](const at::Tensor& x) { return x + at::rand({3}); }, [](int k) { at::manual_seed(k); }};
}

Stateful watched_number() {
  return with<double>(
      0.0, [](const double& scale, const at::Tensor& x) { return x * watch(scale); },
      [](double& scale, int k) { scale = k; });
}

Stateful contents_of_a_list_of_tensors() {
  return with<std::vector<at::Tensor>>(
      {at::zeros({3}), at::zeros({3})}, [](const auto& list, const at::Tensor& x) { return x + list[0] * list[1]; },
      [](auto& list, int k) { list[0].fill_(k), list[1].fill_(2); });
}

Stateful cache_that_is_emptied() {
  return with<at::Tensor>(
      at::Tensor(),
      [](const at::Tensor& cache, const at::Tensor& x) {
        at::Tensor& mine = const_cast<at::Tensor&>(cache);
        if (!mine.defined()) mine = at::full({3}, 7.0);
        return x + mine;
      },
      [](at::Tensor& cache, int k) {
        if (k != 1 && cache.defined()) cache.add_(k);
      });
}

const Case kSeen[] = {{"ModeOfDropout", mode_of_dropout},
                      {"ModeOfAChild", mode_of_a_child},
                      {"ParameterInPlace", parameter_in_place},
                      {"DataOfAParameter", data_of_a_parameter},
                      {"GradientOfAParameter", gradient_of_a_parameter},
                      {"ContentsOfATensor", contents_of_a_tensor},
                      {"ContentsThatAreRead", contents_that_are_read},
                      {"GradMode", grad_mode},
                      {"DefaultDtype", default_dtype},
                      {"Autocast", autocast},
                      {"DeterministicMode", deterministic_mode},
                      {"AttentionBackEnd", attention_back_end},
                      {"Seed", seed},
                      {"WatchedNumber", watched_number},
                      {"ContentsOfAListOfTensors", contents_of_a_list_of_tensors},
                      {"CacheThatIsFilled", cache_that_is_emptied}};

struct Scaling {
  virtual ~Scaling() = default;
  virtual at::Tensor apply(const at::Tensor& x) const = 0;
};
struct Once final : Scaling {
  at::Tensor apply(const at::Tensor& x) const override { return x; }
};
struct Doubled final : Scaling {
  at::Tensor apply(const at::Tensor& x) const override { return x * 2; }
};

Stateful text() {
  return with<std::string>(
      "a", [](const auto& name, const at::Tensor& x) { return name == "b" ? x * 2 : x; },
      [](auto& name, int k) { name = k == 1 ? "b" : "a"; });
}
Stateful entry_of_a_map() {
  return with<std::map<std::string, double>>(
      {}, [](const auto& table, const at::Tensor& x) { return x * table.at("scale"); },
      [](auto& table, int k) { table["scale"] = k; });
}
Stateful flag_in_a_nested_struct() {
  struct Outer {
    struct {
      bool on = false;
    } inner;
  };
  return with<Outer>(
      {}, [](const auto& options, const at::Tensor& x) { return options.inner.on ? x * 2 : x; },
      [](auto& options, int k) { options.inner.on = k == 1; });
}
Stateful function_object() {
  return with<Function>([](const at::Tensor& x) { return x; },
                        [](const Function& inner, const at::Tensor& x) { return inner(x); },
                        [](Function& inner, int k) { inner = [k](const at::Tensor& x) { return x + k; }; });
}
Stateful function_pointer() {
  using Pointer = at::Tensor (*)(const at::Tensor&);
  return with<Pointer>([](const at::Tensor& x) { return x + 0; },
                       [](const Pointer& inner, const at::Tensor& x) { return inner(x); },
                       [](Pointer& inner, int k) {
                         inner = k == 1 ? Pointer([](const at::Tensor& x) { return x * 2; })
                                        : Pointer([](const at::Tensor& x) { return x + 0; });
                       });
}
Stateful virtual_object() {
  return with<std::shared_ptr<Scaling>>(
      std::make_shared<Once>(), [](const auto& scaling, const at::Tensor& x) { return scaling->apply(x); },
      [](auto& scaling, int k) {
        if (k == 1) scaling = std::make_shared<Doubled>();
        if (k != 1) scaling = std::make_shared<Once>();
      });
}
Stateful enumeration() {
  enum class Mode { Plain, Twice };
  return with<Mode>(
      Mode::Plain, [](const Mode& mode, const at::Tensor& x) { return mode == Mode::Twice ? x * 2 : x; },
      [](Mode& mode, int k) { mode = k == 1 ? Mode::Twice : Mode::Plain; });
}
Stateful optional_member() {
  return with<std::optional<double>>(
      {}, [](const auto& scale, const at::Tensor& x) { return scale ? x * *scale : x; },
      [](auto& scale, int k) { scale = k == 1 ? std::optional(2.0) : std::nullopt; });
}
Stateful variant_member() {
  return with<std::variant<int, double>>(
      0, [](const auto& scale, const at::Tensor& x) { return scale.index() == 1 ? x * 2 : x; },
      [](auto& scale, int k) {
        if (k == 1) scale = 2.0;
        if (k != 1) scale = 0;
      });
}
Stateful atomic_number() {
  const auto scale = std::make_shared<std::atomic<int>>(0);
  return {[=](const at::Tensor& x) { return x * scale->load(); }, [=](int k) { *scale = k; }};
}
Stateful expired_pointer() {
  struct State {
    std::shared_ptr<int> owner = std::make_shared<int>(1);
    std::weak_ptr<int> seen = owner;
  };
  return with<State>(
      {}, [](const auto& state, const at::Tensor& x) { return state.seen.expired() ? x : x * 2; },
      [](auto& state, int k) { state.owner = k == 1 ? nullptr : std::make_shared<int>(1), state.seen = state.owner; });
}
Stateful order_of_a_list() {
  return with<std::vector<double>>(
      {1, 2, 3}, [](const auto& steps, const at::Tensor& x) { return x * steps[0] + steps[2]; },
      [](auto& steps, int k) { std::rotate(steps.begin(), steps.begin() + k, steps.end()); });
}

// LibTorch does not dispatch data_ptr() and has no hook at it, so no guard sees these reads of a real tensor.
Stateful memory_of_a_parameter() {
  return with<torch::nn::Linear>(
      linear(),
      [](const auto& layer, const at::Tensor& x) {
        return x * layer.ptr()->weight.template const_data_ptr<float>()[0];
      },
      [](auto& layer, int k) {
        const at::NoGradGuard no_grad;
        layer->weight.fill_(k);
      });
}

const Case kFound[] = {{"Text", text},
                       {"EntryOfAMap", entry_of_a_map},
                       {"FlagInANestedStruct", flag_in_a_nested_struct},
                       {"FunctionObject", function_object},
                       {"FunctionPointer", function_pointer},
                       {"VirtualObject", virtual_object},
                       {"Enumeration", enumeration},
                       {"OptionalMember", optional_member},
                       {"VariantMember", variant_member},
                       {"AtomicNumber", atomic_number},
                       {"ExpiredPointer", expired_pointer},
                       {"OrderOfAList", order_of_a_list},
                       {"MemoryOfAParameter", memory_of_a_parameter}};

void expect_as_eager(const Function& compiled, const Stateful& mine, const Stateful& eager, std::vector<int> states) {
  const at::Tensor x = at::arange(6, at::kFloat).view({2, 3});
  for (std::size_t call = 0; call < states.size(); ++call) {
    mine.set(states[call]);
    at::manual_seed(call < 6 ? 9 : 10);
    const at::Tensor found = compiled(x);
    eager.set(states[call]);
    at::manual_seed(call < 6 ? 9 : 10);
    const at::Tensor expected = eager.function(x);
    EXPECT_THAT(found, BitEqual(expected)) << "call " << call << ", state " << states[call];
    EXPECT_EQ(found.requires_grad(), expected.requires_grad()) << "call " << call;
  }
}

class SeenState : public testing::TestWithParam<Case> {};
class FoundState : public testing::TestWithParam<Case> {};
const auto name_of = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Of, SeenState, testing::ValuesIn(kSeen), name_of);
INSTANTIATE_TEST_SUITE_P(Of, FoundState, testing::ValuesIn(kFound), name_of);

// The state may change at any call, also after the verification.
TEST_P(SeenState, EachCallIsAsInEagerMode) {
  for (const Verify verify : {Verify::FirstHit, Verify::Never, Verify::Always}) {
    const Stateful mine = GetParam().make(), eager = GetParam().make();
    auto compiled = compile(mine.function, {.verify = verify});
    expect_as_eager(compiled, mine, eager, {0, 0, 0, 1, 1, 0, 2, 2});
    mine.end();
    EXPECT_GE(compiled.stats().hits, 1);
  }
}

TEST_P(FoundState, TheFirstVerificationTells) {
  const Stateful mine = GetParam().make();
  auto compiled = compile(mine.function);
  const at::Tensor x = at::arange(6, at::kFloat).view({2, 3});
  mine.set(0);
  compiled(x);
  mine.set(1);
  EXPECT_THROW(compiled(x), StaleCapture);
}

// Code that writes through the address of a parameter writes when it runs, not when its graph runs.
TEST(MemoryOfAParameter, IsWrittenByTheCodeAlone) {
  const torch::nn::Linear layer = linear();
  layer->weight.detach().zero_();
  auto compiled = compile(
      [layer](const at::Tensor& x) {
        layer.ptr()->weight.data_ptr<float>()[0] += 1;
        return x + 1;
      },
      {.fullgraph = true, .verify = Verify::Never});
  for (int call = 0; call < 3; ++call) compiled(at::ones({2}));
  EXPECT_EQ(compiled.stats().hits, 2);
  EXPECT_EQ(layer->weight[0][0].item<float>(), 1);
}

TEST_P(FoundState, AlwaysIsRightInEachCall) {
  const Stateful mine = GetParam().make(), eager = GetParam().make();
  auto compiled = compile(mine.function, {.verify = Verify::Always});
  expect_as_eager(compiled, mine, eager, {0, 0, 1, 1, 0, 2, 1});
}

}  // namespace
}  // namespace rehearse::compiler::forty_states
