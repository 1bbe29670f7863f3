// SPDX-License-Identifier: BSD-3-Clause
// A graph that aot_eager compiled gives the same bits as eager autograd: results, gradients, changed inputs, random
// numbers.
#include <rehearse_internal/compile/aot_eager.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/graph/interpreter.h>

#include "bit_equal.h"
#include "compile/aot/aot_program.h"
#include "core/compile/aot/part_check.h"

namespace rehearse::compiler {
namespace {

using capture::GraphOutput;
using rehearse::test::BitEqual;
using rehearse_test::CompiledPart;
using rehearse_test::leaf;
using rehearse_test::part;
using rehearse_test::PartInput;
using testing::ElementsAre;
using testing::IsEmpty;
using Kind = GraphOutput::Kind;

const char* const kMlp = R"(
  h = aten.linear.default [%x, %w0, %b0]
  r = aten.relu.default [%h]
  y = aten.linear.default [%r, %w1, %b1])";

std::vector<c10::IValue> mlp_inputs(std::int64_t rows) {
  return {leaf({rows, 5}), leaf({7, 5}), leaf({7}), leaf({3, 7}), leaf({3})};
}

std::vector<PartInput> as_given(const std::vector<c10::IValue>& values) {
  std::vector<PartInput> inputs;
  for (const c10::IValue& value : values) inputs.push_back({.value = value});
  return inputs;
}

std::vector<PartInput> with_batch(const std::vector<c10::IValue>& values) {
  std::vector<PartInput> inputs = as_given(values);
  inputs[0].batched = true;
  return inputs;
}

TEST(AotEager, AnMlpAtTheSizesItWasCompiledFor) {
  const CompiledPart mlp(part("x w0 b0 w1 b1", kMlp, "[%y]"), as_given(mlp_inputs(4)));
  mlp.expect_like_eager();
  EXPECT_EQ(mlp.compiled().partition.saved_numbers, 0U);
  EXPECT_TRUE(mlp.shapes().guards().empty());
}

TEST(AotEager, AnMlpWithASymbolicBatchAtAllSizes) {
  const CompiledPart mlp(part("x w0 b0 w1 b1", kMlp, "[%y]"), with_batch(mlp_inputs(4)));
  EXPECT_TRUE(mlp.shapes().guards().empty()) << mlp.shapes().text();
  for (const std::int64_t rows : {4, 2, 3, 17, 64}) mlp.expect_like_eager(mlp_inputs(rows));
}

TEST(AotEager, SizesThatTheBackwardNeedsAreSavedAsNumbers) {
  const CompiledPart sum(part("x", "y = aten.sum.dim_IntList [%x, [0]]", "[%y]"), with_batch({leaf({4, 3})}));
  EXPECT_EQ(sum.compiled().partition.saved_tensors, 0U);
  EXPECT_EQ(sum.compiled().partition.saved_numbers, 1U);
  for (const std::int64_t rows : {4, 2, 9}) sum.expect_like_eager({leaf({rows, 3})});
}

TEST(AotEager, SymbolsThatComeAsInputsAreUsed) {
  std::vector<PartInput> inputs = as_given({std::int64_t{4}, leaf({4, 6})});
  inputs[0].is_batch = true;
  inputs[1].batched = true;
  const CompiledPart reshape(part("s x", R"(
    n = _operator.mul [%s, 2]
    v = aten.view.default [%x, [%n, 3]]
    y = aten.exp.default [%v])",
                                  "[%y, %n, %s]"),
                             inputs);
  for (const std::int64_t rows : {4, 3, 8}) reshape.expect_like_eager({rows, leaf({rows, 6})});
}

TEST(AotEager, AParameterUsedTwiceGetsTheSum) {
  const CompiledPart tied(part("x w", R"(
    h = aten.linear.default [%x, %w]
    r = aten.tanh.default [%h]
    y = aten.linear.default [%r, %w])",
                               "[%y]"),
                          with_batch({leaf({3, 4}), leaf({4, 4})}));
  for (const std::int64_t rows : {3, 6}) tied.expect_like_eager({leaf({rows, 4}), leaf({4, 4})});
}

TEST(AotEager, OperatorsInPlaceOnIntermediates) {
  const CompiledPart part_in_place(part("x w", R"(
    h = aten.linear.default [%x, %w]
    row = aten.select.int [%h, 0, 1]
    tripled = aten.mul_.Scalar [%row, 3]
    r = aten.relu_.default [%h]
    y = aten.sigmoid.default [%h])",
                                        "[%y]"),
                                   as_given({leaf({3, 4}), leaf({4, 4})}));
  part_in_place.expect_like_eager();
}

TEST(AotEager, InputsThatChangeInPlace) {
  std::vector<PartInput> inputs = as_given({leaf({3, 4}), at::zeros({4})});
  inputs[0].through = true;
  const CompiledPart changing(part("x count", R"(
    r = aten.relu_.default [%x]
    c = aten.add_.Tensor [%count, 1]
    y = aten.mul.Tensor [%r, %r])",
                                   "[%y, %r]"),
                              inputs);
  changing.expect_like_eager();
  const auto& joint = changing.compiled().joint;
  ASSERT_EQ(joint.changed_inputs.size(), 1U);
  EXPECT_EQ(joint.changed_inputs[0].input, 0U);
  EXPECT_EQ(joint.outputs[1].kind, Kind::Input);
}

TEST(AotEager, AnInputThatChangesThroughAView) {
  std::vector<PartInput> inputs = as_given({leaf({3, 4})});
  inputs[0].through = true;
  const CompiledPart changing(part("x", R"(
    row = aten.select.int [%x, 0, 1]
    m = aten.mul_.Scalar [%row, 3]
    y = aten.sin.default [%x]
    v = aten.select.int [%x, 0, 1])",
                                   "[%y, %v]"),
                              inputs);
  changing.expect_like_eager();
  EXPECT_EQ(changing.compiled().joint.outputs[1].kind, Kind::View);
}

TEST(AotEager, ABufferThatComesToRequireAGradient) {
  const CompiledPart changing(part("x buffer", R"(
    c = aten.add_.Tensor [%buffer, %x])",
                                   "[%c]"),
                              as_given({leaf({3}), at::zeros({3})}));
  const at::Tensor x = leaf({3}), buffer = at::zeros({3});
  const at::Tensor result = changing.call({x, buffer})[0].toTensor();
  EXPECT_TRUE(result.is_same(buffer));
  buffer.sum().backward();
  EXPECT_THAT(x.grad(), BitEqual(at::ones({3})));
}

TEST(AotEager, ConvolutionAndBatchNormWithTheirRunningStatistics) {
  const char* const steps = R"(
    h = aten.conv2d.default [%x, %w, %b, [1, 1], [1, 1]]
    n = aten.batch_norm.default [%h, %g, %beta, %mean, %var, true, 0.1, 1e-05, false]
    r = aten.relu.default [%n]
    p = aten.max_pool2d.default [%r, [2, 2]]
    y = aten.flatten.using_ints [%p, 1])";
  const auto inputs = [] {
    return std::vector<c10::IValue>{leaf({2, 3, 6, 6}), leaf({4, 3, 3, 3}), leaf({4}),    leaf({4}),
                                    leaf({4}),          at::zeros({4}),     at::ones({4})};
  };
  const CompiledPart net(part("x w b g beta mean var", steps, "[%y]"), as_given(inputs()));
  net.expect_like_eager();
  net.expect_like_eager(inputs());
}

TEST(AotEager, DropoutDrawsOnceFromTheGenerator) {
  const CompiledPart net(part("x", R"(
    d = aten.dropout.default [%x, 0.5, true]
    y = aten.mul.Tensor [%d, %x])",
                              "[%y]"),
                         with_batch({leaf({4, 8})}));
  for (const std::int64_t rows : {4, 9}) net.expect_like_eager({leaf({rows, 8})});
}

TEST(AotEager, AttentionWithASymbolicBatch) {
  const char* const steps = R"(
    n = aten.layer_norm.default [%x, [8], %g, %beta]
    q = aten.linear.default [%n, %wq, %bq]
    k = aten.linear.default [%n, %wk]
    kt = aten.transpose.int [%k, -2, -1]
    scores = aten.matmul.default [%q, %kt]
    p = aten.softmax.int [%scores, -1]
    c = aten.matmul.default [%p, %n]
    s = aten.add.Tensor [%x, %c]
    y = aten.gelu.default [%s])";
  const auto inputs = [](std::int64_t rows) {
    return std::vector<c10::IValue>{leaf({rows, 5, 8}), leaf({8}), leaf({8}), leaf({8, 8}), leaf({8}), leaf({8, 8})};
  };
  const CompiledPart net(part("x g beta wq bq wk", steps, "[%y]"), with_batch(inputs(3)));
  EXPECT_TRUE(net.shapes().guards().empty()) << net.shapes().text();
  for (const std::int64_t rows : {3, 2, 6}) net.expect_like_eager(inputs(rows));
}

TEST(AotEager, ScaledDotProductAttention) {
  const CompiledPart net(part("q k v", "y = aten.scaled_dot_product_attention.default [%q, %k, %v]", "[%y]"),
                         as_given({leaf({2, 2, 5, 4}), leaf({2, 2, 5, 4}), leaf({2, 2, 5, 4})}));
  net.expect_like_eager();
}

TEST(AotEager, EmbeddingAndCrossEntropy) {
  const CompiledPart net(
      part("ids w target", R"(
    e = aten.embedding.default [%w, %ids]
    loss = aten.cross_entropy_loss.default [%e, %target])",
           "[%loss]"),
      as_given({at::tensor({1, 0, 4, 1}, at::kLong), leaf({5, 3}), at::tensor({2, 0, 1, 1}, at::kLong)}));
  net.expect_like_eager();
}

TEST(AotEager, ResultsOfEveryKind) {
  const CompiledPart net(part("x w v unused", R"(
    t = aten.t.default [%w]
    flat = aten.view.default [%t, [2, -1]]
    h = aten.mm.default [%x, %w]
    left = aten.slice.Tensor [%h, 1, 0, 1]
    d = aten.detach.default [%h]
    top = aten.argmax.default [%h]
    e = aten.exp.default [%v]
    lonely = aten.view.default [%e, [-1]])",
                              "[%x, %t, %h, %left, %d, %top, %lonely, 3, none, %h]"),
                         as_given({leaf({3, 4}), leaf({4, 2}), leaf({2, 2}), leaf({2})}));
  net.expect_like_eager();
  std::vector<Kind> kinds;
  for (const GraphOutput& output : net.compiled().joint.outputs) kinds.push_back(output.kind);
  EXPECT_THAT(kinds, ElementsAre(Kind::Input, Kind::View, Kind::Value, Kind::View, Kind::Value, Kind::Value,
                                 Kind::Value, Kind::Value, Kind::Value, Kind::Value));
}

TEST(AotEager, PiecesOfASplitAreViewsOfOneTensor) {
  const CompiledPart net(part("x w", R"(
    h = aten.mm.default [%x, %w]
    s = aten.split.Tensor [%h, 2, 1]
    a = _operator.getitem [%s, 0]
    b = _operator.getitem [%s, 1]
    u = aten.unbind.int [%x]
    first = _operator.getitem [%u, 0])",
                              "[%a, %b, %first]"),
                         as_given({leaf({3, 4}), leaf({4, 4})}));
  net.expect_like_eager();
}

TEST(AotEager, WritingToAResultIsSeenInItsViewsByAutogradToo) {
  const CompiledPart net(part("x", R"(
    h = aten.exp.default [%x]
    v = aten.view.default [%h, [-1]])",
                              "[%h, %v]"),
                         as_given({leaf({2, 3})}));
  const at::Tensor x = leaf({2, 3});
  const auto results = net.call({x});
  results[1].toTensor().add_(1);
  EXPECT_THAT(results[0].toTensor(), BitEqual(x.exp() + 1));
  EXPECT_TRUE(results[1].toTensor()._base().is_same(results[0].toTensor()));
}

TEST(AotEager, RegionsWithoutGradientsAndWithAutocast) {
  const CompiledPart net(part("x w", R"(
    off = torch._C._set_grad_enabled [false]
    scale = aten.mean.default [%w]
    on = torch._C._set_grad_enabled [true]
    enter = torch.amp.autocast_mode._enter_autocast ["cpu", dtype(BFloat16), true, true]
    h = aten.linear.default [%x, %w]
    leave = torch.amp.autocast_mode._exit_autocast [%enter]
    f = aten.to.dtype [%h, dtype(Float)]
    y = aten.mul.Tensor [%f, %scale])",
                              "[%y, %h]"),
                         as_given({leaf({3, 4}), leaf({4, 4})}));
  net.expect_like_eager();
}

TEST(AotEager, NumbersThatOperatorsWantAsTensors) {
  const CompiledPart net(part("x m", R"(
    f = aten.masked_fill.Scalar [%x, %m, -1.5]
    a = aten.add.Tensor [%f, 2] {"alpha": 3}
    y = aten.where.ScalarOther [%m, %a, 0.25])",
                              "[%y]"),
                         as_given({leaf({3, 2}), at::randn({3, 2}) > 0}));
  net.expect_like_eager();
}

TEST(AotEager, TransposedResultsAndTheirTangents) {
  const CompiledPart net(part("x w", R"(
    h = aten.mm.default [%x, %w]
    t = aten.t.default [%h]
    e = aten.exp.default [%t])",
                              "[%e, %t]"),
                         as_given({leaf({3, 4}), leaf({4, 2})}));
  net.expect_like_eager();
  EXPECT_THAT(net.compiled().joint.tangents[0].form.dim_order, ElementsAre(1, 0));
}

// Runs the backward of result 0 alone, with `tangent` as its gradient. Returns each leaf's gradient, which is undefined
// if none arrived. Then resets the leaves' gradients.
std::vector<at::Tensor> gradients_of(const std::vector<c10::IValue>& results, const std::vector<c10::IValue>& leaves,
                                     const at::Tensor& tangent) {
  results[0].toTensor().backward(tangent);
  std::vector<at::Tensor> gradients;
  for (const c10::IValue& input : leaves) {
    gradients.push_back(input.toTensor().grad());
    input.toTensor().mutable_grad().reset();
  }
  return gradients;
}

// Tangents that are contiguous, transposed, expanded, or have gaps. Eager mode chooses the operators of a backward by
// the tangent's layout.
TEST(AotEager, TangentsOfAllForms) {
  const char* const steps = R"(
    h = aten.linear.default [%x, %w, %b]
    y = aten.reshape.default [%h, [-1, 2]]
    z = aten.exp.default [%x])";
  const auto module = part("x w b", steps, "[%y, %z]");
  const std::vector<c10::IValue> leaves{leaf({3, 5}), leaf({4, 5}), leaf({4})};
  const CompiledPart net(module, with_batch(leaves));
  const at::Tensor tangents[] = {at::randn({6, 2}),
                                 at::randn({2, 6}).t(),
                                 at::full({}, 0.1).expand({6, 2}),
                                 at::randn({6, 1}).expand({6, 2}),
                                 at::randn({2}).expand({6, 2}),
                                 at::randn({6, 4}).slice(1, 0, 4, 2)};
  const graph::Interpreter eager(module);
  for (const at::Tensor& tangent : tangents) {
    const auto mine = gradients_of(net.call(leaves), leaves, tangent);
    const auto expected = gradients_of(eager.run(leaves), leaves, tangent);
    EXPECT_THAT(mine, BitEqual(expected)) << "strides " << tangent.strides();
  }
  // One recorded backward is for both results together. The six tangents of result 0 add only five backwards: the last
  // tangent has gaps, so it is copied, and the copy is contiguous like the first tangent.
  EXPECT_EQ(net.compiled().program->backwards().recorded(), 6U);
}

// LibTorch's backward of max() asks whether the largest element is a NaN.
TEST(AotEager, AGraphWhoseBackwardReadsDataRunsUnderEagerAutograd) {
  const CompiledPart net(part("x", "m = aten.max.default [%x]\n y = aten.sub.Tensor [%x, %m]", "[%y]"),
                         with_batch({leaf({3, 2})}));
  EXPECT_THAT(net.compiled().eager_because, testing::HasSubstr("_local_scalar_dense"));
  EXPECT_EQ(net.compiled().program, nullptr);
  for (const std::int64_t rows : {3, 5}) net.expect_like_eager({leaf({rows, 2})});
}

TEST(AotEager, WithoutGradientsThereIsNoBackward) {
  const CompiledPart net(part("x", "y = aten.exp.default [%x]\n v = aten.view.default [%y, [-1]]", "[%y, %v, %x]"),
                         as_given({at::randn({2, 2})}));
  net.expect_like_eager();
  EXPECT_EQ(net.compiled().partition.backward, nullptr);
  const at::NoGradGuard no_grad;
  const CompiledPart other(part("x", "y = aten.exp.default [%x]", "[%y]"), as_given({leaf({2, 2})}));
  EXPECT_EQ(other.compiled().partition.backward, nullptr);
}

TEST(AotEager, AnEmptyGraphReturnsWhatItIsGiven) {
  const CompiledPart net(part("x", "", "[%x, 7]"), as_given({leaf({2})}));
  net.expect_like_eager();
  const CompiledPart nothing(part("", "", "[]"), {});
  EXPECT_THAT(nothing.call({}), IsEmpty());
}

TEST(AotEager, NodesOfTheBackwardComeFromTheLinesOfTheForward) {
  const auto module = part("x", "y = aten.exp.default [%x]", "[%y]");
  module->graph().find("y")->meta().set_origin(
      {.stack_trace = "File \"net.cpp\", line 12, in forward\n    x.exp()", .nn_module_stack = "", .torch_fn = ""});
  const CompiledPart net(module, as_given({leaf({2})}));
  const graph::Node* multiply = net.compiled().partition.backward->graph().find("mul_tensor");
  ASSERT_NE(multiply, nullptr);
  ASSERT_NE(multiply->meta().origin, nullptr);
  EXPECT_EQ(multiply->meta().origin->source_line(), "net.cpp:12");
}

TEST(AotEager, IsABackEndByItsName) { EXPECT_EQ(make_backend("aot_eager")->name(), "aot_eager"); }

}  // namespace
}  // namespace rehearse::compiler
