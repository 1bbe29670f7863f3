// SPDX-License-Identifier: BSD-3-Clause
#include "traced.h"

#include <algorithm>
#include <string_view>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <rehearse/graph/interpreter.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "bit_equal.h"
#include "core/graph/check/verify.h"

namespace rehearse::capture::test {

using rehearse::test::BitEqual;

std::vector<NamedTensor> named_tensors(torch::nn::Module& module) {
  std::vector<NamedTensor> named;
  for (const auto& item : module.named_parameters()) named.push_back({item.key(), item.value(), true, false});
  for (const auto& item : module.named_buffers()) named.push_back({item.key(), item.value(), false, false});
  return named;
}

CapturedGraph trace(const Function& function, const Tensors& inputs, const DynamicSizes& dynamic,
                    std::vector<NamedTensor> named) {
  const auto shapes = shapes::ShapeEnv::make();
  ForwardCapture capture(shapes, std::move(named));
  Tensors fakes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    std::vector<c10::SymInt> sizes;
    for (std::int64_t dim = 0; dim < inputs[i].dim(); ++dim) {
      const bool varies = std::find(dynamic.begin(), dynamic.end(), std::pair(i, dim)) != dynamic.end();
      const std::int64_t size = inputs[i].size(dim);
      sizes.push_back(varies ? shapes->add_backed(size, name + ".size(" + std::to_string(dim) + ")")
                             : c10::SymInt(size));
    }
    fakes.push_back(capture.add_tensor(name, inputs[i], std::move(sizes)));
  }
  Tensors results;
  capture.run([&] { results = function(fakes); });
  CapturedGraph captured = capture.finish({results.begin(), results.end()});
  graph::check_well_formed(*captured.module);
  return captured;
}

std::vector<c10::IValue> arguments_of(const CapturedGraph& captured, const Tensors& inputs) {
  std::vector<c10::IValue> arguments;
  for (const GraphInput& input : captured.inputs) {
    switch (input.kind) {
      case GraphInput::Kind::Tensor:
        arguments.emplace_back(inputs.at(input.index));
        break;
      case GraphInput::Kind::Size:
        arguments.emplace_back(inputs.at(input.index).size(input.dim));
        break;
      case GraphInput::Kind::Captured:
        arguments.emplace_back(input.tensor);
        break;
      case GraphInput::Kind::Int:
        ADD_FAILURE() << input.name << " is an integer, and there are none";
    }
  }
  return arguments;
}

Tensors replay(const CapturedGraph& captured, const Tensors& inputs) {
  Tensors results;
  const graph::Interpreter interpreter(captured.module);
  for (const c10::IValue& value : interpreter.run(arguments_of(captured, inputs))) results.push_back(value.toTensor());
  return results;
}

Tensors gradients(const Tensors& results, const Tensors& of) {
  Tensors losses;
  for (const at::Tensor& result : results) {
    if (result.requires_grad()) losses.push_back(result.sum());
  }
  if (losses.empty() || of.empty()) return {};
  return torch::autograd::grad(losses, of, {}, std::nullopt, false, true);
}

namespace {

void expect_equal(const Tensors& expected, const Tensors& actual, const char* what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_THAT(actual[i], rehearse::test::BitEqual(expected[i])) << what << " " << i;
    if (!expected[i].defined() || !actual[i].defined()) continue;
    EXPECT_EQ(expected[i].requires_grad(), actual[i].requires_grad()) << what << " " << i;
    EXPECT_EQ(expected[i].strides(), actual[i].strides()) << what << " " << i;
  }
}

void expect_metadata(const CapturedGraph& captured, const Tensors& eager) {
  const graph::Argument& output = captured.module->graph().output_node()->args()[0];
  const auto& results = output.as<graph::List>();
  ASSERT_EQ(results.size(), eager.size());
  for (std::size_t i = 0; i < eager.size(); ++i) {
    const graph::TensorMeta* meta = results[i].node() ? results[i].node()->meta().tensor() : nullptr;
    ASSERT_NE(meta, nullptr) << i;
    EXPECT_EQ(meta->dtype, eager[i].scalar_type()) << i;
    EXPECT_EQ(meta->requires_grad, eager[i].requires_grad()) << i << " " << results[i].node()->target();
    ASSERT_EQ(meta->sizes.size(), static_cast<std::size_t>(eager[i].dim())) << i;
    for (std::size_t dim = 0; dim < meta->sizes.size(); ++dim) {
      const auto at = static_cast<std::int64_t>(dim);
      if (!meta->sizes[dim].is_symbolic()) {
        EXPECT_EQ(meta->sizes[dim].number(), eager[i].size(at)) << i;
      }
      if (eager[i].size(at) > 1 && !meta->strides[dim].is_symbolic()) {
        EXPECT_EQ(meta->strides[dim].number(), eager[i].stride(at)) << i;
      }
    }
  }
}

}  // namespace

void expect_same(const CapturedGraph& captured, const Function& function, const Tensors& inputs, const Tensors& of) {
  Tensors wanted = of;
  for (const at::Tensor& input : inputs) {
    if (input.requires_grad()) wanted.push_back(input);
  }
  at::manual_seed(7);
  const Tensors expected = function(inputs);
  expect_metadata(captured, expected);
  const Tensors expected_gradients = gradients(expected, wanted);
  at::manual_seed(7);
  const Tensors actual = replay(captured, inputs);
  expect_equal(expected, actual, "result");
  expect_equal(expected_gradients, gradients(actual, wanted), "gradient");
}

Names targets(const CapturedGraph& captured) {
  constexpr std::string_view kAten = "torch.ops.aten.";
  Names found;
  for (const graph::Node& node : captured.module->graph()) {
    if (node.op() != graph::Op::CallFunction) continue;
    found.push_back(node.target().starts_with(kAten) ? node.target().substr(kAten.size()) : node.target());
  }
  return found;
}

Names placeholders(const CapturedGraph& captured) {
  Names found;
  for (const graph::Node* node : captured.module->graph().placeholders()) found.push_back(node->target());
  return found;
}

}  // namespace rehearse::capture::test
