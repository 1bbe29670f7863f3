// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/backend.h>
#include <rehearse/compile/errors.h>
#include <rehearse/graph/split.h>

#include "bit_equal.h"
#include "compile/partitions/partitioned_graph.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;

// y = x + x; z = y * x; returns z, y, none, x and 7. After a cut between the two steps, y and x are inputs of the
// second partition, and outputs of the graph, too.
std::shared_ptr<graph::GraphModule> two_steps() {
  auto module = std::make_shared<graph::GraphModule>();
  graph::Graph& graph = module->graph();
  graph::Node& x = graph.placeholder("x");
  graph::Node& y = graph.call_function("torch.ops.aten.add.Tensor", {x, x});
  graph::Node& z = graph.call_function("torch.ops.aten.mul.Tensor", {y, x});
  graph.output(graph::List{z, y, graph::Argument(), x, 7});
  return module;
}

std::map<std::string, CompiledPiece> eager_pieces_of(const graph::GraphModule& split) {
  std::map<std::string, CompiledPiece> pieces;
  for (const auto& [name, part] : split.submodules()) {
    const auto guarded = [](std::size_t) { return BorderLayout::Guarded; };
    pieces[name] = {make_backend("eager")->compile({part, {}, nullptr, name}).run,
                    BorderCheck(*part, "piece " + name, guarded)};
  }
  return pieces;
}

TEST(PartitionedGraph, RunsPartitionsAndReturnsWhatTheGraphReturns) {
  const auto module = two_steps();
  int next = 0;
  const graph::SplitModule split = graph::split_by(*module, [&](const graph::Node&) { return next++; });
  const std::map<std::string, CompiledPiece> compiled = eager_pieces_of(*split.module);
  ASSERT_EQ(compiled.size(), 2U);
  const PartitionedGraph glue(*split.module, compiled);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const at::Tensor x = at::full({2}, 3.0);
    const auto outputs = glue.run({x});
    ASSERT_EQ(outputs.size(), 5U);
    EXPECT_THAT(outputs[0].toTensor(), BitEqual(at::full({2}, 18.0)));
    EXPECT_THAT(outputs[1].toTensor(), BitEqual(at::full({2}, 6.0)));
    EXPECT_TRUE(outputs[2].isNone());
    EXPECT_TRUE(outputs[3].toTensor().is_same(x));
    EXPECT_EQ(outputs[4].toInt(), 7);
  }
  EXPECT_THROW(glue.run({}), graph::GraphError);
}

// A graph with a partition that was not compiled, or with nodes other than calls of partitions, is refused.
TEST(PartitionedGraph, RefusesWhatItCannotRun) {
  EXPECT_THROW(PartitionedGraph(*two_steps(), {}), graph::GraphError);
  int next = 0;
  const graph::SplitModule split = graph::split_by(*two_steps(), [&](const graph::Node&) { return next++; });
  EXPECT_THROW(PartitionedGraph(*split.module, {}), graph::GraphError);
}

// Pieces that were compiled for a tensor of two numbers that requires no gradient.
PartitionedGraph pieces_of_two_numbers() {
  const auto module = two_steps();
  for (graph::Node& node : module->graph()) {
    if (node.op() != graph::Op::Output) node.meta().set_value(graph::TensorMeta{.sizes = {2}, .strides = {1}});
  }
  int next = 0;
  const graph::SplitModule split = graph::split_by(*module, [&](const graph::Node&) { return next++; });
  const std::map<std::string, CompiledPiece> compiled = eager_pieces_of(*split.module);
  return PartitionedGraph(*split.module, compiled);
}

TEST(PartitionedGraph, RefusesATensorThatIsNotWhatAPieceWasCompiledFor) {
  const PartitionedGraph glue = pieces_of_two_numbers();
  EXPECT_EQ(glue.run({at::ones({2})}).size(), 5U);
  const auto message_for = [&](const at::Tensor& x) -> std::string {
    try {
      glue.run({x});
    } catch (const BorderMismatch& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(
      message_for(at::ones({2}).requires_grad_()),
      testing::HasSubstr("'x' reaches piece submod_0 of a compiled function in another form than at the capture: it "
                         "requires no grad, and requires grad now"));
  EXPECT_THAT(message_for(at::ones({3})), testing::HasSubstr("is [2], and is [3] now"));
  EXPECT_THAT(message_for(at::ones({2}, at::kDouble)), testing::HasSubstr("is Float, and is Double now"));
  const at::NoGradGuard no_grad;
  EXPECT_EQ(message_for(at::ones({2}).requires_grad_()), "");
}

}  // namespace
}  // namespace rehearse::compiler
