// SPDX-License-Identifier: BSD-3-Clause
#include "compile/aot/beyond_data.h"

#include <algorithm>
#include <array>
#include <utility>

namespace rehearse::compiler {
namespace {

constexpr std::string_view kVersion = "torch.ops.rehearse.version.default";
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kUses = {{
    {"torch.ops.rehearse.resize_storage.default", "it changes the size of a storage"},
    {"torch.ops.rehearse.set_version.default", "it sets the version of a tensor"},
    {kVersion, "it asks for the version of a tensor"},
}};

}  // namespace

bool asks_for_version(const graph::GraphModule& module) {
  return std::any_of(module.graph().begin(), module.graph().end(),
                     [](const graph::Node& node) { return node.target() == kVersion; });
}

UseBeyondData use_beyond_data(const graph::GraphModule& module) {
  for (const graph::Node& node : module.graph()) {
    const auto use =
        std::find_if(kUses.begin(), kUses.end(), [&](const auto& each) { return each.first == node.target(); });
    if (node.op() == graph::Op::CallFunction && use != kUses.end()) return {&node, use->second};
  }
  return {nullptr, ""};
}

}  // namespace rehearse::compiler
