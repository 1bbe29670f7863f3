// SPDX-License-Identifier: BSD-3-Clause
#include "core/compile/aot/part_check.h"

#include <optional>
#include <sstream>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <rehearse/graph/interpreter.h>
#include <rehearse/graph/text.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "bit_equal.h"

namespace rehearse_test {
namespace {

using rehearse::graph::GraphModule;
using rehearse::test::BitEqual;

bool is_tensor(const c10::IValue& value) { return value.isTensor() && value.toTensor().defined(); }

void expect_same(const at::Tensor& mine, const at::Tensor& eager, const std::string& what) {
  ASSERT_EQ(mine.defined(), eager.defined()) << what;
  if (!mine.defined()) return;
  ASSERT_EQ(mine.sizes(), eager.sizes()) << what;
  ASSERT_EQ(mine.scalar_type(), eager.scalar_type()) << what;
  EXPECT_THAT(mine, BitEqual(eager)) << what;
}

// A tangent that differs for each result, and does not depend on data.
at::Tensor tangent_for(const at::Tensor& result, std::size_t index) {
  const at::Tensor counted = at::arange(result.numel(), at::kDouble).mul(0.37).add(static_cast<double>(index)).sin();
  return counted.view(result.sizes()).to(result.scalar_type());
}

}  // namespace

std::shared_ptr<GraphModule> part(const std::string& inputs, const std::string& steps, const std::string& outputs) {
  std::string text = "graph_module \"GraphModule\" {\n";
  std::istringstream names(inputs), lines(steps);
  for (std::string name; names >> name;) text += "  %" + name + " = placeholder \"" + name + "\" []\n";
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, equals, target;
    if (!(words >> name >> equals >> target)) continue;
    if (target.starts_with("aten.")) target = "torch.ops." + target;
    std::string rest;
    std::getline(words, rest);
    text += "  %" + name + " = call_function \"" + target + "\"" + rest + "\n";
  }
  text += "  %output = output \"output\" [" + outputs + "]\n}\n";
  return rehearse::graph::parse_graph_module(text);
}

at::Tensor leaf(at::IntArrayRef sizes) { return at::randn(sizes).requires_grad_(); }

CompiledPart::CompiledPart(std::shared_ptr<GraphModule> part, std::vector<PartInput> inputs)
    : part_(std::move(part)), inputs_(std::move(inputs)) {
  std::vector<c10::IValue> examples;
  std::optional<c10::SymInt> batch;
  for (const PartInput& input : inputs_) {
    if (is_tensor(input.value)) {
      rehearse::capture::TensorSpec spec = rehearse::capture::spec_of(input.value.toTensor());
      if (input.batched) {
        spec.sizes[0] = shapes_->add_backed(input.value.toTensor().size(0), "x.size(0)");
        spec.strides = rehearse::capture::contiguous_strides(spec.sizes);
        batch = spec.sizes[0];
      }
      examples.emplace_back(rehearse::capture::make_fake(spec));
    } else {
      examples.push_back(input.value);
    }
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].is_batch) examples[i] = *batch;
  }
  const rehearse::compiler::BackendInput input{part_, examples, shapes_, "forward"};
  run_ = backend_.compile(input);
  restore(input);
}

void CompiledPart::restore(const rehearse::compiler::BackendInput& input) {
  std::string stored;
  try {
    stored = run_.store();
  } catch (const std::exception& error) {
    not_stored_ = error.what();
    return;
  }
  restored_ = second_backend_.restore(input, stored);
  EXPECT_EQ(restored_.store(), stored);
  const auto& made = *backend_.graphs().front();
  const auto& again = *second_backend_.graphs().front();
  EXPECT_EQ(to_text(*again.partition.forward), to_text(*made.partition.forward));
  ASSERT_EQ(again.partition.backward == nullptr, made.partition.backward == nullptr);
  if (made.partition.backward == nullptr) return;
  EXPECT_EQ(to_text(*again.partition.backward), to_text(*made.partition.backward));
}

CompiledPart::Run CompiledPart::run_and_differentiate(const rehearse::compiler::CompiledGraph& graph,
                                                      const std::vector<c10::IValue>& inputs) const {
  Run run;
  at::manual_seed(7);
  for (const c10::IValue& input : inputs) {
    const bool copied = is_tensor(input);
    run.leaves.push_back(
        copied ? c10::IValue(input.toTensor().detach().clone().requires_grad_(input.toTensor().requires_grad()))
               : input);
  }
  for (int step = 0; step < 2; ++step) {
    run.inputs = run.leaves;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].through) run.inputs[i] = run.leaves[i].toTensor() * 1;
    }
    run.outputs = graph(run.inputs);
    std::vector<at::Tensor> roots, tangents;
    for (std::size_t i = 0; i < run.outputs.size(); ++i) {
      if (!is_tensor(run.outputs[i]) || !run.outputs[i].toTensor().requires_grad()) continue;
      roots.push_back(run.outputs[i].toTensor());
      tangents.push_back(tangent_for(roots.back(), i));
    }
    if (!roots.empty()) torch::autograd::backward(roots, tangents);
  }
  run.generator_state = at::globalContext().defaultGenerator(at::kCPU).get_state();
  return run;
}

void CompiledPart::expect_like_eager() const {
  std::vector<c10::IValue> values;
  for (const PartInput& input : inputs_) values.push_back(input.value);
  expect_like_eager(values);
}

void CompiledPart::expect_like_eager(const std::vector<c10::IValue>& inputs) const {
  const rehearse::graph::Interpreter interpreter(part_);
  const Run eager = run_and_differentiate([&](auto values) { return interpreter.run(std::move(values)); }, inputs);
  expect_like(eager, run_, inputs);
  if (restored_) expect_like(eager, restored_, inputs);
}

void CompiledPart::expect_like(const Run& eager, const rehearse::compiler::CompiledGraph& graph,
                               const std::vector<c10::IValue>& inputs) const {
  const Run mine = run_and_differentiate(graph, inputs);
  ASSERT_EQ(mine.outputs.size(), eager.outputs.size());
  for (std::size_t i = 0; i < eager.outputs.size(); ++i) {
    const std::string what = "output " + std::to_string(i);
    if (!is_tensor(eager.outputs[i])) {
      EXPECT_FALSE(is_tensor(mine.outputs[i])) << what;
      EXPECT_TRUE(mine.outputs[i] == eager.outputs[i]) << what;
      continue;
    }
    ASSERT_TRUE(is_tensor(mine.outputs[i])) << what;
    const at::Tensor& expected = eager.outputs[i].toTensor();
    expect_same(mine.outputs[i].toTensor(), expected, what);
    EXPECT_EQ(mine.outputs[i].toTensor().requires_grad(), expected.requires_grad()) << what;
    EXPECT_EQ(mine.outputs[i].toTensor().strides(), expected.strides()) << what;
  }
  for (std::size_t i = 0; i < eager.leaves.size(); ++i) {
    if (!is_tensor(eager.leaves[i])) continue;
    const std::string what = "input " + std::to_string(i);
    expect_same(mine.inputs[i].toTensor(), eager.inputs[i].toTensor(), what);
    expect_same(mine.leaves[i].toTensor().grad(), eager.leaves[i].toTensor().grad(), "gradient of " + what);
    EXPECT_EQ(mine.inputs[i].toTensor().requires_grad(), eager.inputs[i].toTensor().requires_grad()) << what;
    EXPECT_EQ(mine.inputs[i].toTensor()._version(), eager.inputs[i].toTensor()._version()) << what;
  }
  EXPECT_THAT(mine.generator_state, BitEqual(eager.generator_state));
}

}  // namespace rehearse_test
