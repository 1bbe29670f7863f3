// SPDX-License-Identifier: BSD-3-Clause
// Tests the tester itself: it sees each difference between a program in eager mode and its twin. A seed always makes
// the same program.
#include <functional>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "differential/program/generate.h"
#include "differential/program/text.h"
#include "differential/run/documented_differences.h"
#include "differential/run/finding.h"
#include "differential/run/observe.h"

namespace rehearse_test::differential {
namespace {

// y = x0 * 2, with a computed tensor x0.
Program doubled() {
  Program program;
  program.arguments = {{.sizes = {{0, 0}, {4, Size::kFixed}}, .form = Form::Computed}};
  Statement scale;
  scale.operation = &operation("scale");
  scale.inputs = {0};
  scale.factor = 2;
  scale.outputs = {6};
  program.statements = {scale};
  program.results = {6};
  return program;
}

// The tester's verdict if eager mode runs y = x0 * 2, and the twin runs `other`.
std::string kind_of(const std::function<Tensors(Net&, const Tensors&)>& other) {
  const Program program = doubled();
  const CallSpec call;
  Net net(program);
  const Observed eager =
      observe(program, call, net, [&](const Tensors& arguments, std::int64_t count, std::int64_t& steps) {
        return net.forward(arguments, count, steps);
      });
  EXPECT_EQ(eager.error, "");
  const Observed found = observe(
      program, call, net, [&](const Tensors& arguments, std::int64_t, std::int64_t&) { return other(net, arguments); });
  const auto difference = compare(eager, found);
  return difference ? difference->kind : "";
}

TEST(DifferentialTester, SeesWhatATwinDoesDifferently) {
  using T = const Tensors&;
  const auto twice = [](const at::Tensor& x) { return x * 2; };
  EXPECT_EQ(kind_of([&](Net&, T x) -> Tensors { return {twice(x[0])}; }), "");
  EXPECT_EQ(kind_of([&](Net&, T x) -> Tensors { return {twice(x[0]) + 1e-15}; }), "wrong result  values");
  EXPECT_EQ(kind_of([&](Net& net, T x) -> Tensors { return net.buffer.requires_grad_(), Tensors{twice(x[0])}; }),
            "wrong buffer buffer requires_grad afterwards");
  EXPECT_EQ(kind_of([&](Net&, T x) -> Tensors { return {twice(x[0]).to(at::kFloat)}; }), "wrong result ");
  EXPECT_EQ(kind_of([&](Net&, T x) -> Tensors { return {twice(x[0]), x[0]}; }), "wrong number of results");
  EXPECT_EQ(kind_of([&](Net&, T x) -> Tensors { return {twice(x[0].detach())}; }), "wrong result  requires_grad");
  EXPECT_EQ(kind_of([&](Net&, T x) -> Tensors { return {twice(x[0]) + (x[0].detach() - x[0]) * 0.5}; }),
            "wrong gradient of leaf  values");
  EXPECT_EQ(kind_of([&](Net&, T x) -> Tensors { return {twice(x[0].t().contiguous().t())}; }), "wrong result  strides");
  EXPECT_EQ(kind_of([&](Net&, T x) -> Tensors { return at::rand({1}), Tensors{twice(x[0])}; }),
            "wrong generator values");
  EXPECT_EQ(kind_of([&](Net& net, T x) -> Tensors { return net.counter.add_(1), Tensors{twice(x[0])}; }),
            "wrong buffer counter values");
  EXPECT_EQ(kind_of([&](Net& net, T x) -> Tensors { return {twice(x[0]) + net.vector * 0}; }),
            "wrong gradient of parameter vector");  // zeros, but undefined in eager mode
  EXPECT_EQ(kind_of([&](Net&, T x) -> Tensors {
              const at::Tensor y = twice(x[0]), z = x[0].mul_(1);
              return {y};
            }),
            "wrong argument  has another version");  // the values are the same
  EXPECT_EQ(kind_of([&](Net&, T x) -> Tensors {
              const at::Tensor y = twice(x[0]);
              x[0].variable_data().mul_(3);  // has a version of its own
              return {y};
            }),
            "wrong argument  values");
  EXPECT_EQ(kind_of([&](Net&, T x) -> Tensors { return {twice(x.at(5))}; }),
            "throws in forward: vector::_M_range_check: __n (which is ) >= this->size() (which is )");
}

TEST(DifferentialTester, SeesSharedMemoryAndMissingErrors) {
  Program program = doubled();
  const CallSpec call;
  Net net(program);
  const auto seen = [&](const std::function<Tensors(const Tensors&)>& run) {
    return observe(program, call, net,
                   [&](const Tensors& arguments, std::int64_t, std::int64_t&) { return run(arguments); });
  };
  const Observed view = seen([](const Tensors& x) -> Tensors { return {x[0].view({-1})}; });
  const Observed copy = seen([](const Tensors& x) -> Tensors { return {x[0].clone().view({-1})}; });
  const Observed thrown = seen([](const Tensors&) -> Tensors { throw std::runtime_error("no 7\nmore"); });
  EXPECT_EQ(compare(view, copy).value().kind, "wrong result  shares memory with");
  EXPECT_EQ(compare(thrown, view).value().kind, "does not throw: no ");
  EXPECT_EQ(compare(view, thrown).value().kind, "throws in forward: no ");
  EXPECT_FALSE(compare(thrown, thrown));
}

Statement on(const char* name, int input, int output) {
  Statement statement;
  statement.operation = &operation(name);
  statement.inputs = {input};
  statement.factor = 2;
  statement.outputs = {output};
  return statement;
}

void expect_no_difference(const Program& program) {
  for (const Setting& setting : settings()) {
    const Outcome outcome = check(prepared(program, setting), setting, all_calls(1));
    const bool differs = outcome.difference && !outcome.difference->kind.starts_with(kRefused);
    EXPECT_FALSE(differs) << setting.name << ": " << outcome.difference->text;
  }
}

// Eager DDP gives zeros to a parameter if the history of a result leads to it but no backward reaches it. In a graph,
// the parameter's gradient is undefined. docs/COMPILE.md lists this difference, so the tester does not report it.
TEST(DifferentialTester, LeavesOutWhatDdpMakesOfAParameterThatNoBackwardReaches) {
  Program program;
  constexpr int kVector = 0, kMatrix = 1;
  program.statements = {on("scale", kMatrix, 5), on("reduce_scatter", kVector, 6)};
  program.results = {5, 6};
  program.backward = Backward::FirstAlone;
  expect_no_difference(program);
}

// A backward that begins at a changed argument calls, in a graph, the hooks of a parameter that eager mode would not
// reach. docs/COMPILE.md lists DDP's error.
TEST(DifferentialTester, LeavesOutWhatDdpMakesOfAChangedArgument) {
  Program program;
  constexpr int kVector = 1;
  program.arguments = {{.sizes = {{4, Size::kFixed}}, .form = Form::Computed}};
  program.statements = {on("zero_", 0, 6), on("item", kVector, 6)};
  program.statements[0].outputs.clear();
  program.results = {kVector};
  expect_no_difference(program);
}

TEST(DifferentialTester, SeesZerosInPlaceOfAnUndefinedGradient) {
  const auto seen = [](const at::Tensor& gradient, const char* name) {
    Observed observed;
    observed.facts = {{name, gradient.defined() ? "Double" : "undefined", gradient}};
    return observed;
  };
  const Observed none = seen({}, "gradient of parameter a"), zeros = seen(at::zeros(2), "gradient of parameter a");
  EXPECT_TRUE(compare(none, zeros).value().zeros_or_undefined);
  EXPECT_TRUE(compare(zeros, none).value().zeros_or_undefined);
  EXPECT_FALSE(compare(none, seen(at::ones(2), "gradient of parameter a")).value().zeros_or_undefined);
  EXPECT_FALSE(compare(seen(at::ones(2), "gradient of parameter a"), zeros).value().zeros_or_undefined);
  EXPECT_EQ(undefined_gradients(none), std::set<std::string>{"gradient of parameter a"});
  EXPECT_EQ(undefined_gradients(seen({}, "gradient of leaf 0")), std::set<std::string>{"gradient of leaf 0"});
  EXPECT_TRUE(undefined_gradients(seen({}, "result 0")).empty());
}

TEST(DifferentialTester, ComparesBitsAndTakesNaNForEqual) {
  const auto kind = [](const at::Tensor& eager, const at::Tensor& compiled) {
    const auto seen = [](const at::Tensor& values) {
      Observed observed;
      observed.facts = {{"result 0", "Float", values}};
      return observed;
    };
    const auto difference = compare(seen(eager), seen(compiled));
    return difference ? difference->kind : "";
  };
  const at::Tensor zero = at::zeros({2}), nan = at::full({2}, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(kind(nan, nan.clone()), "");
  EXPECT_EQ(kind(nan, -nan), "");
  EXPECT_EQ(kind(zero, zero.clone()), "");
  EXPECT_EQ(kind(zero, -zero), "wrong result  values");
  EXPECT_EQ(kind(nan, zero), "wrong result  values");
  EXPECT_EQ(kind(zero, nan), "wrong result  values");
}

TEST(DifferentialTester, TellsRefusalsThatThePageLists) {
  const std::string text = "The memory of a fake tensor was asked for (data_ptr(), an accessor, printing), at f.cpp:3";
  EXPECT_TRUE(is_documented_refusal(text, {"pointwise", "swallow"}));
  EXPECT_FALSE(is_documented_refusal(text, {"pointwise", "module"}));
  EXPECT_FALSE(is_documented_refusal("The sizes of what aten::f gives cannot be told", {"swallow"}));
  const std::string sizes = "'f' changes the sizes of an argument before it reads data or enters an eager region";
  EXPECT_TRUE(is_documented_refusal(sizes, {"form"}));
  EXPECT_FALSE(is_documented_refusal(sizes, {"pointwise"}));
  const std::string changed =
      "one of the variables needed for gradient computation has been modified by an inplace "
      "operation: [CPUDoubleType [3]], which is output 1 of ";
  EXPECT_TRUE(is_documented_error({"throws in backward: one", changed + "CompiledBackward(f)"}, {}));
  EXPECT_FALSE(is_documented_error({"throws in backward: one", changed + "SinBackward0"}, {}));
  EXPECT_FALSE(is_documented_error({"throws in forward: one", changed + "CompiledBackward(f)"}, {}));
}

TEST(DifferentialTester, ShrinksToWhatTheFailureNeeds) {
  const Program program = generate(5, {.families = families()});
  const auto has = [](const Case& tested, const std::string& name) {
    return text_of(tested.program).find(name) != std::string::npos;
  };
  ASSERT_GE(statements_in(program.statements), 12);
  const std::string first = program.statements.front().operation->name;
  const Case small = shrink({program, all_calls(5)}, [&](const Case& candidate) {
    const auto& list = candidate.program.statements;
    return !list.empty() && list.front().operation->name == first && has(candidate, "return");
  });
  EXPECT_EQ(statements_in(small.program.statements), 1) << text_of(small.program);
  EXPECT_EQ(small.calls.size(), 1U);
}

TEST(DifferentialTester, ASeedMakesTheSameProgramAlways) {
  const Recipe recipe{.families = families()};
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Program program = generate(seed, recipe);
    EXPECT_EQ(text_of(program), text_of(generate(seed, recipe)));
    EXPECT_TRUE(runs_eagerly(program));
    EXPECT_GE(statements_in(program.statements), recipe.statements);
  }
}

}  // namespace
}  // namespace rehearse_test::differential
