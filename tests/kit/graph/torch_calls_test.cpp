// SPDX-License-Identifier: BSD-3-Clause
// Methods, torch.* and torch.nn.functional resolve to the operator that Python would call. If there is none, the error
// says so.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/graph/text.h>

#include "bit_equal.h"
#include "kit/graph/dynamo_interpreter.h"

namespace rehearse::graph {
namespace {

using c10::IValue;
using rehearse::test::BitEqual;
using testing::HasSubstr;
using testing::StartsWith;

// The value of the last line, for inputs x (2 by 3 floats, 0 to 5) and n (an int).
IValue run(const std::string& lines, std::int64_t n = 2) {
  const auto module = parse_graph_module("graph_module \"G\" {%x = placeholder \"x\" [] %n = placeholder \"n\" [] " +
                                         lines + " %output = output \"output\" [%r]}");
  return DynamoInterpreter(module).run({at::arange(6, at::kFloat).reshape({2, 3}), n}).at(0);
}

std::string call_error(const std::string& lines) {
  try {
    run(lines);
  } catch (const GraphError& error) {
    return error.what();
  }
  return "no error";
}

const at::Tensor kX = at::arange(6, at::kFloat).reshape({2, 3});

struct Case {
  std::string lines;
  at::Tensor wanted;
};

TEST(TorchCalls, ChooseTheOverloadThatPythonChooses) {
  const std::vector<Case> cases = {
      {R"(%r = call_method "view" [%x, 3, %n])", kX.view({3, 2})},
      {R"(%r = call_method "view" [%x, [3, %n]])", kX.view({3, 2})},
      {R"(%r = call_method "view" [%x, -1])", kX.view({-1})},
      {R"(%r = call_method "view" [%x, dtype(Int)])", kX.view(at::kInt)},
      {R"(%r = call_method "permute" [%x, 1, 0])", kX.t()},
      {R"(%r = call_method "t" [%x])", kX.t()},
      {R"(%r = call_method "add" [%x, %x] {"alpha": 2})", kX * 3},
      {R"(%r = call_method "add" [%x, 1])", kX + 1},
      {R"(%r = call_method "to" [%x, dtype(Long)])", kX.to(at::kLong)},
      {R"(%r = call_method "to" [%x] {"dtype": dtype(Half)})", kX.to(at::kHalf)},
      {R"(%r = call_method "to" [%x, device("cpu"), dtype(Double)])", kX.to(at::kDouble)},
      {R"(%d = call_method "double" [%x] %r = call_method "to" [%x, %d])", kX.to(at::kDouble)},
      {R"(%r = call_method "bfloat16" [%x])", kX.to(at::kBFloat16)},
      {R"(%r = call_method "sum" [%x])", kX.sum()},
      {R"(%r = call_method "sum" [%x, 1])", kX.sum(1)},
      {R"(%r = call_method "sum" [%x] {"dim": [0, 1], "keepdim": true})", kX.sum(at::IntArrayRef({0, 1}), true)},
      {R"(%r = call_method "flatten" [%x, 0])", kX.flatten()},
      {R"(%r = call_method "pow" [%x, 2])", kX.pow(2)},
      {R"(%r = call_method "masked_fill" [%x, %m, -1.0])", kX.masked_fill(kX > 2, -1.0)},
      {R"(%r = call_method "expand" [%k, 4, -1, -1])", kX.unsqueeze(0).expand({4, -1, -1})},
      {R"(%r = call_function "torch.softmax" [%x, -1])", kX.softmax(-1)},
      {R"(%r = call_function "torch.softmax" [] {"input": %x, "dim": 0})", kX.softmax(0)},
      {R"(%r = call_function "torch.zeros" [2, %n])", at::zeros({2, 2})},
      {R"(%r = call_function "torch.full" [[2, 3], 1.5] {"dtype": dtype(Double)})", at::full({2, 3}, 1.5, at::kDouble)},
      {R"(%r = call_function "torch.where" [%m, %x, 0.0])", at::where(kX > 2, kX, 0.0)},
      {R"(%r = call_function "torch.stack" [[%x, %x], 1])", at::stack({kX, kX}, 1)},
      {R"(%r = call_function "torch.nn.functional.layer_norm" [%x, [3]] {"eps": 0.5})",
       at::layer_norm(kX, {3}, {}, {}, 0.5)},
      {R"(%r = call_function "torch.nn.functional.relu" [] {"input": %x})", kX},
      {R"(%r = call_function "_operator.add" [1.5, %x])", 1.5 + kX},
      {R"(%r = call_function "_operator.sub" [%n, %x])", 2 - kX},
      {R"(%r = call_function "_operator.floordiv" [%x, 2])", at::floor_divide(kX, 2)},
      {R"(%r = call_function "_operator.truediv" [%x, %n])", kX / 2},
      {R"(%r = call_function "_operator.ge" [%x, 2])", kX >= 2},
      {R"(%r = call_function "_operator.and_" [%m, %m])", kX > 2},
      {R"(%r = call_function "_operator.neg" [%x])", -kX},
      {R"(%r = call_function "_operator.getitem" [%x, 1])", kX[1]},
      {R"(%r = call_function "_operator.getitem" [%x, [slice(none, none, none), slice(1, none, none)]])",
       kX.slice(1, 1)},
      {R"(%r = call_function "_operator.getitem" [%x, [none, ..., -1]])", kX.select(1, 2).unsqueeze(0)},
      {R"(%r = call_function "_operator.getitem" [%x, slice(none, %one, none)])", kX.slice(0, 0, 1)},
      {R"(%r = call_function "_operator.getitem" [%x, %m])", kX.masked_select(kX > 2)},
  };
  const std::string before =
      R"(%one = call_function "_operator.sub" [%n, 1] %m = call_function "_operator.gt" [%x, 2] %k = call_method "unsqueeze" [%x, 0] )";
  for (const Case& given : cases) {
    SCOPED_TRACE(given.lines);
    const at::Tensor found = run(before + given.lines).toTensor();
    EXPECT_EQ(found.scalar_type(), given.wanted.scalar_type());
    EXPECT_THAT(found, BitEqual(given.wanted));
  }
}

// x[0, 1] is a number and x[[0, 1]] two rows, but a graph has a list for both.
TEST(TorchCalls, IndicesThatMayBeATupleOrAListAreRefused) {
  const std::string item =
      R"(%i = call_function "torch.full" [[], 1] {"dtype": dtype(Long)} %r = call_function "_operator.getitem" )";
  for (const char* index : {"[0, 1]", "[0]", "[]", "[%n, 0]", "[true]", "[%i, 0]"}) {
    EXPECT_THAT(call_error(item + "[%x, " + index + "]"),
                StartsWith("node 'r', args[1]: is a list of numbers, which as a tuple would"))
        << index;
  }
  const auto constant = parse_graph_module(R"(graph_module "G" {%x = placeholder "x" []
    %r = call_function "_operator.getitem" [%x, [0, 1]] %output = output "output" [%r]})");
  EXPECT_THROW(DynamoInterpreter{constant}, GraphError);
  const std::string rows =
      R"(%i = call_function "torch.ones" [1] {"dtype": dtype(Long)} %r = call_function "_operator.getitem" )";
  EXPECT_THAT(run(rows + "[%x, [%i, 0]]").toTensor(), BitEqual(kX.select(1, 0).slice(0, 1)));
  EXPECT_THAT(run(rows + "[%x, [0, ...]]").toTensor(), BitEqual(kX[0]));
  EXPECT_THAT(run(rows + "[%x, [0, none]]").toTensor(), BitEqual(kX[0].unsqueeze(0)));
}

TEST(TorchCalls, MethodsThatGiveNumbers) {
  EXPECT_EQ(run(R"(%r = call_method "size" [%x, 1])").toInt(), 3);
  EXPECT_EQ(run(R"(%r = call_method "size" [%x] {"dim": -2})").toInt(), 2);
  EXPECT_EQ(run(R"(%r = call_method "size" [%x])").toIntVector(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(run(R"(%s = call_method "size" [%x] %r = call_function "_operator.getitem" [%s, 1])").toInt(), 3);
  EXPECT_EQ(run(R"(%r = call_method "dim" [%x])").toInt(), 2);
  EXPECT_EQ(run(R"(%r = call_method "numel" [%x])").toInt(), 6);
  EXPECT_EQ(run(R"(%s = call_method "sum" [%x] %r = call_method "item" [%s])").toDouble(), 15.0);
}

TEST(TorchCalls, WhatThereIsNotIsNamed) {
  EXPECT_EQ(call_error(R"(%r = call_method "frobnicate" [%x])"),
            "node 'r', target: 'frobnicate' is no method of tensors that is an operator of this LibTorch");
  EXPECT_EQ(call_error(R"(%r = call_method "t" [])"), "node 'r', args: a method needs a self");
  EXPECT_THAT(call_error(R"(%r = call_method "t" [%x, 1])"),
              StartsWith("node 'r', args: no form of aten::t takes (Tensor, int); there are\n  aten::t("));
  EXPECT_THAT(call_error(R"(%r = call_method "sum" [%x] {"dims": 1})"),
              StartsWith("node 'r', args: no form of aten::sum takes (Tensor, dims=int)"));
  EXPECT_EQ(call_error(R"(%r = call_method "dim" [%n])"), "node 'r', args[0]: must be a tensor, and is Int");
  EXPECT_THAT(call_error(R"(%r = call_function "torch.frobnicate" [%x])"),
              HasSubstr("'torch.frobnicate' is no operator"));
  EXPECT_THAT(
      call_error(R"(%r = call_function "torch.nn.functional.multi_head_attention_forward" [%x])"),
      HasSubstr("'torch.nn.functional.multi_head_attention_forward' cannot be run; of torch.nn.functional these can: "
                "batch_norm, dropout, embedding, group_norm, layer_norm, relu"));
  EXPECT_EQ(call_error(R"(%r = call_function "torch.nn.functional.relu" [%x] {"input": %x})"),
            "node 'r', kwargs.input: is given by position too");
  EXPECT_EQ(call_error(R"(%r = call_function "torch.nn.functional.relu" [%x] {"in": 1})"),
            "node 'r', kwargs.in: 'torch.nn.functional.relu' takes no argument of this name");
  EXPECT_EQ(call_error(R"(%r = call_function "torch.nn.functional.layer_norm" [%x])"),
            "node 'r', normalized_shape: is missing");
  EXPECT_EQ(call_error(R"(%r = call_function "torch.nn.functional.embedding" [%x, %x, none, 1.0])"),
            "node 'r', max_norm: cannot be run: it changes the weight");
  EXPECT_EQ(call_error(R"(%r = call_function "torch.nn.functional.embedding" [%x, %x, -1])"),
            "node 'r', padding_idx: cannot be run: it is negative. Give the number of the row instead");
  EXPECT_EQ(call_error(R"(%r = call_function "_operator.getitem" [%x, [[0, 1]]])"),
            "node 'r', args[1]: a list within an index cannot be run: pass a tensor");
  EXPECT_EQ(call_error(R"(%b = call_function "_operator.gt" [%n, 2] %r = call_function "torch._check" [%b])"),
            "node 'r', args[0]: the check failed");
}

TEST(TorchCalls, LeafModulesRunFromTheirParameters) {
  const auto module = parse_graph_module(R"(graph_module "G" {
    submodule "fc" graph_module "Linear" { attribute "weight" {"sizes": [4, 3], "strides": [3, 1]} }
    submodule "act" graph_module "ReLU" {}
    %x = placeholder "x" []
    %y = call_module "fc" [%x]
    %z = call_module "act" [%y]
    %output = output "output" [%z]
  })");
  const auto error = [&] {
    try {
      DynamoInterpreter interpreter(module);
    } catch (const GraphError& refused) {
      return std::string(refused.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error(), "node 'y', target: the attribute 'fc.weight' has no data");
  const at::Tensor weight = at::arange(12, at::kFloat).reshape({4, 3}) - 6;
  module->find_submodule("fc")->set_attribute("weight", {{}, weight, false});
  EXPECT_THAT(DynamoInterpreter(module).run({kX})[0].toTensor(), BitEqual(at::matmul(kX, weight.t()).clamp_min(0)));
  module->set_submodule("act", std::make_shared<GraphModule>("Conv2d"));
  EXPECT_EQ(error(),
            "node 'z', target: the submodule 'act' (Conv2d) has no graph, and its settings (a stride, a momentum) are "
            "no part of "
            "this one; by their parameters alone these can be run: Linear, Embedding, ReLU");
}

}  // namespace
}  // namespace rehearse::graph
