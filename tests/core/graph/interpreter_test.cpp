// SPDX-License-Identifier: BSD-3-Clause
// The interpreter calls operators as their schemas say, frees what is no longer used, and names the node at fault.
#include <rehearse/graph/interpreter.h>

#include <limits>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/graph/operators.h>

#include "graph/pt2/sympy_text.h"
#include "graph/run/python_functions.h"

namespace rehearse::graph {
namespace {

using testing::HasSubstr;

TEST(Operators, TargetsNameOperatorsAndBack) {
  for (const char* target : {"torch.ops.aten.add.Tensor", "torch.ops.aten.relu.default", "torch.ops.aten.sym_size.int"}) {
    const auto op = find_operator(target);
    ASSERT_TRUE(op.has_value()) << target;
    EXPECT_EQ(target_of(*op), target);
  }
  for (const char* target : {"torch.ops.aten.add.Nothing", "torch.ops.higher_order.cond", "_operator.add", "", "torch.ops."}) {
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
    Node& pool = g.call_function("torch.ops.aten.avg_pool2d.default", {g.call_function("torch.ops.aten.ones.default", {List{1, 4, 4}}), 2});
    Node& sum = g.call_function("torch.ops.aten.sum.dim_IntList", {x}, {{"keepdim", true}, {"dim", List{1}}});
    Node& scaled = g.call_function("torch.ops.aten.add.Tensor", {x, 2}, {{"alpha", 3}});
    Node& parts = g.call_function("torch.ops.aten.split.Tensor", {x, 1, 1});
    Node& last = g.call_function("_operator.getitem", {parts, -1});
    return List{zeros, pool, sum, scaled, last, wide, {}, "text", List{wide, 1.5}};
  });
  const at::Tensor x = at::arange(6, at::kFloat).reshape({2, 3});
  const auto results = Interpreter(module).run({x});
  ASSERT_EQ(results.size(), 9u);
  EXPECT_TRUE(at::equal(results[0].toTensor(), at::zeros({6, 2}, at::kLong)));
  EXPECT_EQ(results[1].toTensor().sizes(), at::IntArrayRef({1, 2, 2}));
  EXPECT_TRUE(at::equal(results[2].toTensor(), x.sum(1, true)));
  EXPECT_TRUE(at::equal(results[3].toTensor(), x + 6));
  EXPECT_EQ(results[3].toTensor().scalar_type(), at::kFloat) << "a number does not decide the dtype";
  EXPECT_TRUE(at::equal(results[4].toTensor(), x.slice(1, 2, 3)));
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
  EXPECT_TRUE(at::equal(interpreter.run(std::move(inputs))[0].toTensor(), at::full({2}, 4.0f)));
  EXPECT_THAT(alive_after, testing::ElementsAre("x:", "a: x", "b:", "unused: b", "c:"));
}

TEST(Interpreter, WrongGraphsAreRefusedBeforeTheyRun) {
  EXPECT_EQ(error_with([](Graph& g, Node& x) -> Argument { return g.call_function("my.op", {x}); }),
            "node 'op', target: 'my.op' is no operator of this LibTorch, and no function that the interpreter knows");
  EXPECT_THAT(error_with([](Graph& g, Node& x) -> Argument { return g.call_function("torch.ops.aten.add.Tensor", {x}); }),
              HasSubstr("node 'add_tensor', other: is missing; the operator is aten::add.Tensor("));
  EXPECT_THAT(error_with([](Graph& g, Node& x) -> Argument {
                return g.call_function("torch.ops.aten.relu.default", {x, 1});
              }),
              HasSubstr("args: has arguments that the operator does not take: aten::relu("));
  EXPECT_THAT(error_with([](Graph& g, Node& x) -> Argument {
                return g.call_function("torch.ops.aten.relu.default", {x}, {{"self", x}});
              }),
              HasSubstr("kwargs.self: is given by position too"));
  EXPECT_THAT(error_with([](Graph& g, Node&) -> Argument { return g.get_attr("w"); }), HasSubstr("no attribute 'w'"));
  EXPECT_THAT(error_with([](Graph& g, Node& x) -> Argument { return g.call_module("m", {x}); }), HasSubstr("no submodule 'm'"));
  EXPECT_THAT(error_with([](Graph& g, Node& x) -> Argument { return g.call_method("add_", {x}); }),
              HasSubstr("no form of aten::add_ takes (Tensor)"));
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

c10::IValue call(const char* name, std::vector<c10::IValue> arguments) { return find_python_function(name)->call(arguments); }

TEST(PythonFunctions, RoundAndSignAsPython) {
  for (std::int64_t a = -7; a <= 7; ++a) {
    for (std::int64_t b = -3; b <= 3; ++b) {
      if (b == 0) continue;
      const std::int64_t quotient = call("_operator.floordiv", {a, b}).toInt();
      const std::int64_t rest = call("_operator.mod", {a, b}).toInt();
      EXPECT_EQ(quotient, static_cast<std::int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b))));
      EXPECT_EQ(quotient * b + rest, a);
      EXPECT_TRUE(rest == 0 || (rest < 0) == (b < 0));
    }
  }
  EXPECT_EQ(call("_operator.truediv", {7, 2}).toDouble(), 3.5);
  EXPECT_EQ(call("_operator.mod", {-7.5, 2}).toDouble(), 0.5);
  EXPECT_EQ(call("_operator.pow", {3, 4}).toInt(), 81);
  EXPECT_EQ(call("_operator.pow", {2, -1}).toDouble(), 0.5);
  EXPECT_EQ(call("math.ceil", {2.1}).toInt(), 3);
  EXPECT_EQ(call("math.trunc", {-2.9}).toInt(), -2);
  EXPECT_EQ(call("torch.sym_max", {2, 3.0}).toDouble(), 3.0);
  EXPECT_EQ(call("torch.sym_min", {2, 3}).toInt(), 2);
  EXPECT_EQ(call("torch.sym_ite", {false, 1, 2}).toInt(), 2);
  EXPECT_TRUE(call("_operator.and_", {true, true}).toBool());
  EXPECT_TRUE(call("_operator.ge", {2.0, 2}).toBool());
  EXPECT_EQ(call("_operator.lshift", {3, 4}).toInt(), 48);
  EXPECT_EQ(call("_operator.rshift", {-5, 1}).toInt(), -3);
}

// Each line was computed by CPython 3.11.
TEST(PythonFunctions, MixedAndLargeNumbersAreThoseOfPython) {
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;
  const std::int64_t max = std::numeric_limits<std::int64_t>::max();
  const double even = 9007199254740992.0;
  const double beyond = 9223372036854775808.0;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(call("_operator.eq", {odd, even}).toBool());
  EXPECT_TRUE(call("_operator.ne", {even, odd}).toBool());
  EXPECT_TRUE(call("_operator.gt", {odd, even}).toBool());
  EXPECT_TRUE(call("_operator.lt", {even, odd}).toBool());
  EXPECT_TRUE(call("_operator.eq", {odd - 1, even}).toBool());
  EXPECT_FALSE(call("_operator.eq", {max, beyond}).toBool());
  EXPECT_TRUE(call("_operator.lt", {max, beyond}).toBool());
  EXPECT_TRUE(call("_operator.eq", {-max - 1, -beyond}).toBool());
  EXPECT_TRUE(call("_operator.gt", {-max - 1, -infinity}).toBool());
  EXPECT_TRUE(call("_operator.lt", {-3, -2.5}).toBool());
  EXPECT_TRUE(call("_operator.gt", {-2, -2.5}).toBool());
  EXPECT_FALSE(call("_operator.le", {1, nan}).toBool());
  EXPECT_FALSE(call("_operator.ge", {nan, 1}).toBool());
  EXPECT_TRUE(call("_operator.ne", {nan, 1}).toBool());
  EXPECT_EQ(call("torch.sym_max", {odd, even}).toDouble(), even);
  EXPECT_EQ(call("_operator.floordiv", {1.0, 0.1}).toDouble(), 9.0);
  EXPECT_EQ(call("_operator.floordiv", {-5.0, infinity}).toDouble(), -1.0);
  EXPECT_TRUE(std::signbit(call("_operator.floordiv", {0.0, -1.0}).toDouble()));
  EXPECT_TRUE(std::isnan(call("_operator.floordiv", {infinity, 2.0}).toDouble()));
  EXPECT_EQ(call("_operator.mod", {-1.0, infinity}).toDouble(), infinity);
  EXPECT_TRUE(std::signbit(call("_operator.mod", {4.0, -2.0}).toDouble()));
  EXPECT_EQ(call("_operator.truediv", {max, max - 1}).toDouble(), 1.0);
  EXPECT_EQ(call("_operator.truediv", {odd, 2}).toDouble(), 4503599627370496.5);
  EXPECT_EQ(call("_operator.truediv", {9007199254740995, 3}).toDouble(), 3002399751580331.5);
  EXPECT_EQ(call("_operator.truediv", {-max - 1, 3}).toDouble(), -3.0744573456182584e18);
  EXPECT_EQ(call("_operator.truediv", {1, max}).toDouble(), 1.0842021724855044e-19);
  EXPECT_EQ(call("_operator.pow", {0, 0}).toInt(), 1);
  EXPECT_EQ(call("_operator.pow", {-2, -3}).toDouble(), -0.125);
  EXPECT_EQ(call("_operator.pow", {-8.0, 3}).toDouble(), -512.0);
}

TEST(PythonFunctions, ErrorsArePythons) {
  const auto error_of = [](const char* name, std::vector<c10::IValue> arguments) -> std::string {
    try {
      call(name, std::move(arguments));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of("_operator.pow", {0, -1}), "0.0 cannot be raised to a negative power");
  EXPECT_EQ(error_of("_operator.pow", {0.0, -0.5}), "0.0 cannot be raised to a negative power");
  EXPECT_EQ(error_of("_operator.pow", {-8, 0.5}), "the result is complex");
  EXPECT_EQ(error_of("_operator.pow", {1e300, 2}), "the result is too large for a float");
  EXPECT_EQ(error_of("_operator.truediv", {1, 0}), "division by zero");
  EXPECT_EQ(error_of("_operator.floordiv", {1.0, 0.0}), "division by zero");
  EXPECT_EQ(error_of("torch.sym_sqrt", {-1}), "there is no square root of a negative number");
}

TEST(PythonFunctions, KeywordsGoWhereTheirNamesSay) {
  const auto result_of = [](const char* target, List args, Dict kwargs) -> c10::IValue {
    return Interpreter(module_with([&](Graph& g, Node&) -> Argument { return g.call_function(target, args, kwargs); })).run({1})[0];
  };
  EXPECT_EQ(result_of("torch.sym_ite", {true}, {{"f", 3}, {"t", 2}}).toInt(), 2);
  EXPECT_EQ(result_of("torch.sym_ite", {}, {{"f", 3}, {"t", 2}, {"b", false}}).toInt(), 3);
  EXPECT_EQ(result_of("torch.sym_max", {4}, {{"b", 2}}).toInt(), 4);
  const auto error_of = [](const char* target, List args, Dict kwargs) {
    return error_with([&](Graph& g, Node&) -> Argument { return g.call_function(target, args, kwargs); });
  };
  EXPECT_EQ(error_of("_operator.sub", {5}, {{"b", 2}}), "node 'sub', kwargs.b: '_operator.sub' takes no argument of this name");
  EXPECT_EQ(error_of("torch.sym_max", {5}, {{"a", 2}}), "node 'sym_max', kwargs.a: is given by position too");
  EXPECT_EQ(error_of("torch.sym_max", {5}, {{"c", 2}}), "node 'sym_max', kwargs.c: 'torch.sym_max' takes no argument of this name");
  EXPECT_EQ(error_of("torch.sym_max", {5}, {}), "node 'sym_max', args: 'torch.sym_max' takes 2 arguments");
}

TEST(PythonFunctions, WhatDoesNotFitIsRefused) {
  const std::int64_t max = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(call("_operator.add", {max, 1}), std::invalid_argument);
  EXPECT_THROW(call("_operator.mul", {max, 2}), std::invalid_argument);
  EXPECT_THROW(call("_operator.pow", {10, 19}), std::invalid_argument);
  EXPECT_THROW(call("_operator.neg", {-max - 1}), std::invalid_argument);
  EXPECT_THROW(call("_operator.floordiv", {-max - 1, -1}), std::invalid_argument);
  EXPECT_THROW(call("_operator.lshift", {1, 63}), std::invalid_argument);
  EXPECT_THROW(call("math.floor", {1e300}), std::invalid_argument);
  EXPECT_THROW(call("_operator.mod", {1, 0}), std::invalid_argument);
  EXPECT_THROW(call("_operator.add", {"a", 1}), std::invalid_argument);
  EXPECT_THROW(call("_operator.getitem", {c10::ivalue::Tuple::create({1, 2}), 2}), std::invalid_argument);
  EXPECT_EQ(find_python_function("_operator.concat"), nullptr);
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
