// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rehearse/parallel/bucket_splitter.h>

namespace rehearse::parallel {

// Builds a graph, usually a chain of matrix products, each with a parameter of 64 bytes.
class SplitterFixture : public testing::Test {
 protected:
  graph::Node& input(const std::string& name) { return module->graph().placeholder(name); }

  static graph::TensorMeta parameter_meta(std::int64_t rows = 4) {
    graph::TensorMeta meta;
    meta.sizes = {rows, 4};
    meta.strides = {4, 1};
    meta.requires_grad = true;
    meta.is_parameter = true;
    return meta;
  }

  // A module without a graph, with one parameter `weight`.
  static std::shared_ptr<graph::GraphModule> linear(const at::Tensor& weight = {}) {
    const auto leaf = std::make_shared<graph::GraphModule>("Linear");
    leaf->set_attribute("weight", {parameter_meta(), weight, false});
    return leaf;
  }

  graph::Node& parameter(const std::string& name, bool ignored = false) {
    const graph::TensorMeta meta = parameter_meta();
    graph::Node& node = module->graph().placeholder(name);
    node.meta().set_value(meta);
    node.meta().ddp_ignored = ignored;
    return node;
  }

  // The names of the parameters, bucket by bucket, with caps of 1 byte.
  std::vector<std::vector<std::string>> parameters(const CountingRules& rules) {
    std::vector<std::vector<std::string>> all;
    for (const auto& bucket : assign_buckets(*module, {1, 1, rules})) all.push_back(bucket.parameters);
    return all;
  }

  graph::Node& mm(graph::Node& x, graph::Node& w) { return module->graph().call_function("torch.mm", {x, w}); }

  std::vector<std::int64_t> bytes(const CountingRules& rules, std::int64_t cap = 1) {
    std::vector<std::int64_t> all;
    for (const auto& bucket : assign_buckets(*module, {cap, cap, rules})) all.push_back(bucket.bytes);
    return all;
  }

  std::shared_ptr<graph::GraphModule> module = std::make_shared<graph::GraphModule>();
};

}  // namespace rehearse::parallel
