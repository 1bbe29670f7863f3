// SPDX-License-Identifier: BSD-3-Clause
// The interpreter calls operators as their schemas say, frees values after their last use, and names the node at fault.
#include <rehearse/graph/interpreter.h>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/graph/text.h>
#include <rehearse_internal/graph/operators.h>

#include "bit_equal.h"
#include "graph/pt2/sympy_text.h"

namespace rehearse::graph {
namespace {

using rehearse::test::BitEqual;
using testing::HasSubstr;

TEST(Operators, TargetsNameOperatorsAndBack) {
  for (const char* target :
       {"torch.ops.aten.add.Tensor", "torch.ops.aten.relu.default", "torch.ops.aten.sym_size.int"}) {
    const auto op = find_operator(target);
    ASSERT_TRUE(op.has_value()) << target;
    EXPECT_EQ(target_of(*op), target);
  }
  for (const char* target :
       {"torch.ops.aten.add.Nothing", "torch.ops.higher_order.cond", "_operator.add", "", "torch.ops."}) {
    EXPECT_FALSE(find_operator(target).has_value()) << target;
  }
}

std::shared_ptr<GraphModule> module_with(const std::function<Argument(Graph&, Node&)>& build) {
  auto module = std::make_shared<GraphModule>();
  Node& x = module->graph().placeholder("x");
  module->graph().output(build(module->graph(), x));
  return module;
}

std::string error_with(const std::function<Argument(Graph&, Node&)>& build) {
  try {
    Interpreter(module_with(build)).run({at::ones({2, 3})});
  } catch (const GraphError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Interpreter, FillsSchemasFromPositionsNamesAndDefaults) {
  const auto module = module_with([](Graph& g, Node& x) -> Argument {
    Node& size = g.call_function("torch.ops.aten.sym_size.int", {x, 1});
    Node& wide = g.call_function("_operator.mul", {size, 2});
    Node& zeros = g.call_function("torch.ops.aten.zeros.default", {List{wide, 2}}, {{"dtype", c10::kLong}});
    Node& pool = g.call_function("torch.ops.aten.avg_pool2d.default",
                                 {g.call_function("torch.ops.aten.ones.default", {List{1, 4, 4}}), 2});
    Node& sum = g.call_function("torch.ops.aten.sum.dim_IntList", {x}, {{"keepdim", true}, {"dim", List{1}}});
    Node& scaled = g.call_function("torch.ops.aten.add.Tensor", {x, 2}, {{"alpha", 3}});
    Node& parts = g.call_function("torch.ops.aten.split.Tensor", {x, 1, 1});
    Node& last = g.call_function("_operator.getitem", {parts, -1});
    return List{zeros, pool, sum, scaled, last, wide, {}, "text", List{wide, 1.5}};
  });
  const at::Tensor x = at::arange(6, at::kFloat).reshape({2, 3});
  const auto results = Interpreter(module).run({x});
  ASSERT_EQ(results.size(), 9u);
  EXPECT_THAT(results[0].toTensor(), BitEqual(at::zeros({6, 2}, at::kLong)));
  EXPECT_EQ(results[1].toTensor().sizes(), at::IntArrayRef({1, 2, 2}));
  EXPECT_THAT(results[2].toTensor(), BitEqual(x.sum(1, true)));
  EXPECT_THAT(results[3].toTensor(), BitEqual(x + 6));
  EXPECT_EQ(results[3].toTensor().scalar_type(), at::kFloat) << "a number does not decide the dtype";
  EXPECT_THAT(results[4].toTensor(), BitEqual(x.slice(1, 2, 3)));
  EXPECT_EQ(results[5].toInt(), 6);
  EXPECT_TRUE(results[6].isNone());
  EXPECT_EQ(results[7].toStringRef(), "text");
  EXPECT_EQ(results[8].toTupleRef().elements()[1].toDouble(), 1.5);
}

TEST(Interpreter, ValuesAreFreedAfterTheirLastUse) {
  const auto module = module_with([](Graph& g, Node& x) -> Argument {
    Node& a = g.call_function("torch.ops.aten.mul.Tensor", {x, 2}, {}, "a");
    Node& b = g.call_function("torch.ops.aten.add.Tensor", {a, x}, {}, "b");
    g.call_function("torch.ops.aten.neg.default", {b}, {}, "unused");
    return g.call_function("torch.ops.aten.add.Tensor", {b, 1}, {}, "c");
  });
  Interpreter interpreter(module);
  std::map<std::string, c10::weak_intrusive_ptr<c10::TensorImpl>> seen;
  std::vector<std::string> alive_after;
  interpreter.set_observer([&](const Node& node, const c10::IValue& value) {
    seen.emplace(node.name(), value.toTensor().getIntrusivePtr());
    std::string alive = node.name() + ":";
    for (const auto& [name, weak] : seen) alive += weak.expired() || name == node.name() ? "" : " " + name;
    alive_after.push_back(alive);
  });
  std::vector<c10::IValue> inputs;
  inputs.emplace_back(at::ones({2}));
  EXPECT_THAT(interpreter.run(std::move(inputs))[0].toTensor(), BitEqual(at::full({2}, 4.0f)));
  EXPECT_THAT(alive_after, testing::ElementsAre("x:", "a: x", "b:", "unused: b", "c:"));
}

TEST(Interpreter, WrongGraphsAreRefusedBeforeTheyRun) {
  EXPECT_EQ(error_with([](Graph& g, Node& x) -> Argument { return g.call_function("my.op", {x}); }),
            "node 'op', target: 'my.op' is no operator of this LibTorch, and no function that the interpreter knows");
  EXPECT_THAT(
      error_with([](Graph& g, Node& x) -> Argument { return g.call_function("torch.ops.aten.add.Tensor", {x}); }),
      HasSubstr("node 'add_tensor', other: is missing; the operator is aten::add.Tensor("));
  EXPECT_THAT(
      error_with([](Graph& g, Node& x) -> Argument { return g.call_function("torch.ops.aten.relu.default", {x, 1}); }),
      HasSubstr("args: has arguments that the operator does not take: aten::relu("));
  EXPECT_THAT(error_with([](Graph& g, Node& x) -> Argument {
                return g.call_function("torch.ops.aten.relu.default", {x}, {{"self", x}});
              }),
              HasSubstr("kwargs.self: is given by position too"));
  EXPECT_THAT(error_with([](Graph& g, Node&) -> Argument { return g.get_attr("w"); }), HasSubstr("no attribute 'w'"));
  EXPECT_THAT(error_with([](Graph& g, Node& x) -> Argument { return g.call_module("m", {x}); }),
              HasSubstr("no submodule 'm'"));
  EXPECT_THAT(error_with([](Graph& g, Node& x) -> Argument { return g.call_method("add_", {x}); }),
              HasSubstr("call_method 'add_' cannot be run; operators of the dispatcher can"));
  EXPECT_THAT(error_with([](Graph& g, Node& x) -> Argument {
                return g.call_function("torch.ops.higher_order.cond", {x, x, x, List{}});
              }),
              HasSubstr("args[1]: must be an attribute that is a submodule"));
  EXPECT_THROW(Interpreter(std::make_shared<GraphModule>()), GraphError);
}

TEST(Interpreter, WrongValuesAreNamedWithTheirArgument) {
  EXPECT_THAT(error_with([](Graph& g, Node& x) -> Argument {
                return g.call_function("torch.ops.aten.sum.dim_IntList", {x, List{"a"}});
              }),
              HasSubstr("node 'sum_dim_int_list', args[1] (dim): must be int, and is String"));
  EXPECT_THAT(error_with([](Graph& g, Node& x) -> Argument {
                return g.call_function("torch.ops.aten.ones.default", {List{SymExpr{"s0"}}});
                (void)x;
              }),
              HasSubstr("the expression 's0' has no value here"));
  EXPECT_THAT(error_with([](Graph& g, Node& x) -> Argument {
                Node& zero = g.call_function("_operator.sub", {1, 1});
                (void)x;
                return g.call_function("_operator.floordiv", {1, zero});
              }),
              HasSubstr("node 'floordiv', args: _operator.floordiv: division by zero"));
  const auto bad = module_with([](Graph& g, Node& x) -> Argument {
    Node& bad = g.call_function("torch.ops.aten.view.default", {x, List{7}}, {}, "bad");
    bad.meta().set_origin({"File \"net.py\", line 9, in forward\n  x.view(7)", "", ""});
    return bad;
  });
  try {
    Interpreter(bad).run({at::ones({2, 3})});
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("in node 'bad', torch.ops.aten.view.default, from net.py:9"));
  }
  EXPECT_THROW(Interpreter(bad).run({}), GraphError);
}

TEST(Interpreter, ModesEndWithTheGraphAlsoWhenANodeFails) {
  const at::Tensor x = at::arange(6, at::kFloat).reshape({2, 3});
  const at::Tensor w = at::ones({3, 3}).requires_grad_();
  const auto module = parse_graph_module(R"(graph_module "G" {
    %x = placeholder "x" []
    %w = placeholder "w" []
    %v = placeholder "v" []
    %off = call_function "torch._C._set_grad_enabled" [false]
    %first = call_function "torch.ops.aten.mm.default" [%x, %w]
    %on = call_function "torch._C._set_grad_enabled" [true]
    %outer = call_function "torch.amp.autocast_mode._enter_autocast" ["cpu", dtype(BFloat16), true, none]
    %inner = call_function "torch.amp.autocast_mode._enter_autocast" ["cpu", dtype(Half), true, none]
    %second = call_function "torch.ops.aten.mm.default" [%x, %v]
    %leave = call_function "torch.amp.autocast_mode._exit_autocast" [%inner]
    %third = call_function "torch.ops.aten.mm.default" [%x, %v]
    %leave_1 = call_function "torch.amp.autocast_mode._exit_autocast" [%outer]
    %fourth = call_function "torch.ops.aten.mm.default" [%x, %w]
    %off_1 = call_function "torch._C._set_grad_enabled" [false]
    %output = output "output" [[%first, %second, %third, %fourth]]
  })");
  const Interpreter interpreter(module);
  const auto results = interpreter.run({x, w, at::ones({3, 3})});
  EXPECT_TRUE(at::GradMode::is_enabled());
  EXPECT_FALSE(results[0].toTensor().requires_grad());
  EXPECT_EQ(results[1].toTensor().scalar_type(), at::kHalf);
  EXPECT_EQ(results[2].toTensor().scalar_type(), at::kBFloat16);
  EXPECT_EQ(results[3].toTensor().scalar_type(), at::kFloat);
  EXPECT_TRUE(results[3].toTensor().requires_grad());

  const auto failing = parse_graph_module(R"(graph_module "G" {
    %x = placeholder "x" []
    %off = call_function "torch._C._set_grad_enabled" [false]
    %outer = call_function "torch.amp.autocast_mode._enter_autocast" ["cpu", dtype(BFloat16), true, none]
    %inner = call_function "torch.amp.autocast_mode._enter_autocast" ["cpu", dtype(Half), false, none]
    %r = call_function "torch.ops.aten.view.default" [%x, [7]]
    %leave = call_function "torch.amp.autocast_mode._exit_autocast" [%inner]
    %leave_1 = call_function "torch.amp.autocast_mode._exit_autocast" [%outer]
    %output = output "output" [%r]
  })");
  const c10::ScalarType dtype = at::autocast::get_autocast_dtype(at::kCPU);
  EXPECT_THROW(Interpreter(failing).run({x}), c10::Error);
  EXPECT_TRUE(at::GradMode::is_enabled());
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  EXPECT_EQ(at::autocast::get_autocast_dtype(at::kCPU), dtype);
  EXPECT_EQ(
      error_with([](Graph& g, Node& x) -> Argument { return g.call_function("torch._C._set_grad_enabled", {x}); }),
      "node '_set_grad_enabled', args: must be one bool");
}

TEST(PythonFunctions, KeywordsGoWhereTheirNamesSay) {
  const auto result_of = [](const char* target, List args, Dict kwargs) -> c10::IValue {
    return Interpreter(module_with([&](Graph& g, Node&) -> Argument { return g.call_function(target, args, kwargs); }))
        .run({1})[0];
  };
  EXPECT_EQ(result_of("torch.sym_ite", {true}, {{"f", 3}, {"t", 2}}).toInt(), 2);
  EXPECT_EQ(result_of("torch.sym_ite", {}, {{"f", 3}, {"t", 2}, {"b", false}}).toInt(), 3);
  EXPECT_EQ(result_of("torch.sym_max", {4}, {{"b", 2}}).toInt(), 4);
  const auto error_of = [](const char* target, List args, Dict kwargs) {
    return error_with([&](Graph& g, Node&) -> Argument { return g.call_function(target, args, kwargs); });
  };
  EXPECT_EQ(error_of("_operator.sub", {5}, {{"b", 2}}),
            "node 'sub', kwargs.b: '_operator.sub' takes no argument of this name");
  EXPECT_EQ(error_of("torch.sym_max", {5}, {{"a", 2}}), "node 'sym_max', kwargs.a: is given by position too");
  EXPECT_EQ(error_of("torch.sym_max", {5}, {{"c", 2}}),
            "node 'sym_max', kwargs.c: 'torch.sym_max' takes no argument of this name");
  EXPECT_EQ(error_of("torch.sym_max", {5}, {}), "node 'sym_max', args: 'torch.sym_max' takes 2 arguments");
}

TEST(SympyText, IsTheNotationOfDynamo) {
  EXPECT_EQ(sympy_text("Symbol('s77', positive=True, integer=True)"), "s77");
  EXPECT_EQ(sympy_text("Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(-1))"), "2*s0 + -1");
  EXPECT_EQ(sympy_text("Mul(Add(Symbol('s0'), Integer(1)), Symbol('u1'))"), "(s0 + 1)*u1");
  EXPECT_EQ(sympy_text("FloorDiv(Add(Symbol('s0'), Integer(1)), Integer(2))"), "((s0 + 1)//2)");
  EXPECT_EQ(sympy_text("Pow(Add(Symbol('s0'), Integer(1)), Integer(2))"), "(s0 + 1)**2");
  EXPECT_EQ(sympy_text("GreaterThan(Symbol('u0'), Integer(0))"), "u0 >= 0");
  EXPECT_EQ(sympy_text("Max(Integer(1), Mod(Symbol('s0'), Integer(4)))"), "Max(1, Mod(s0, 4))");
  EXPECT_EQ(sympy_text("Equality(Symbol('s0'), Integer(3))"), "Eq(s0, 3)");
  EXPECT_EQ(sympy_text("s0*2"), "s0*2") << "text that is no constructor call stays";
  EXPECT_EQ(sympy_text("Add(Symbol('s0'"), "Add(Symbol('s0'");
  EXPECT_EQ(sympy_text("s0"), "s0");
  EXPECT_EQ(sympy_text(""), "");
}

}  // namespace
}  // namespace rehearse::graph
