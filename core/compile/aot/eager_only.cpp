// SPDX-License-Identifier: BSD-3-Clause
#include "compile/aot/eager_only.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "compile/aot/find_node.h"

namespace rehearse::compiler {
namespace {

constexpr std::string_view kVersion = "torch.ops.rehearse.version.default";
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kUses = {{
    {"torch.ops.rehearse.resize_storage.default", "it changes the size of a storage"},
    {"torch.ops.rehearse.set_version.default", "it sets the version of a tensor"},
    {kVersion, "it asks for the version of a tensor"},
    {"torch.ops.rehearse.opaque.default", "it runs a function by opaque()"},
}};

// The namespaces of LibTorch's operators and of Rehearse's own.
constexpr std::string_view kNamespaces[] = {"_c10d_functional",
                                            "_c10d_functional_autograd",
                                            "_dtensor",
                                            "_quantized",
                                            "_test",
                                            "aten",
                                            "c10d",
                                            "higher_order",
                                            "inductor",
                                            "mkl",
                                            "mkldnn",
                                            "mkldnn_prepacked",
                                            "onednn",
                                            "prepacked",
                                            "prim",
                                            "prims",
                                            "profiler",
                                            "quantization",
                                            "quantized",
                                            "rehearse",
                                            "sparse",
                                            "static_runtime",
                                            "symm_mem"};

// The namespace in "torch.ops.aten.add.Tensor"; empty for other targets, which all are LibTorch's.
std::string_view namespace_of(std::string_view target) {
  constexpr std::string_view kOps = "torch.ops.";
  if (!target.starts_with(kOps)) return "";
  target.remove_prefix(kOps.size());
  return target.substr(0, target.find('.'));
}

// What only eager autograd can do with the node; empty: nothing.
std::string use_of(const graph::Node& node) {
  if (node.op() != graph::Op::CallFunction) return "";
  const auto use =
      std::find_if(kUses.begin(), kUses.end(), [&](const auto& each) { return each.first == node.target(); });
  if (use != kUses.end()) return std::string(use->second);
  const auto of = namespace_of(node.target());
  const bool is_known =
      of.empty() || std::find(std::begin(kNamespaces), std::end(kNamespaces), of) != std::end(kNamespaces);
  return is_known ? "" : "it calls " + node.target() + ", which is not LibTorch's";
}

}  // namespace

bool asks_for_version(const graph::GraphModule& module) {
  return std::any_of(module.graph().begin(), module.graph().end(),
                     [](const graph::Node& node) { return node.target() == kVersion; });
}

EagerOnly find_eager_only(const graph::GraphModule& module) {
  const auto* const found =
      find_node(module, [](const graph::Node& node, const graph::GraphModule&) { return !use_of(node).empty(); });
  return {found, found != nullptr ? use_of(*found) : ""};
}

}  // namespace rehearse::compiler
