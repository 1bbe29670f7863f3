// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <ATen/core/dispatch/Dispatcher.h>

#include <rehearse/graph/node.h>

namespace rehearse::graph {

// The operator of LibTorch's dispatcher for a target: `torch.ops.aten.add.Tensor` is aten::add.Tensor, and
// `torch.ops.aten.relu.default` is aten::relu. Nothing for other targets, and for operators that are not registered.
std::optional<c10::OperatorHandle> find_operator(std::string_view target);

// The value that `node` passes, by position or by name, for the argument with the number `index` in the schema. `node`
// must call an operator with this schema. Null if the call leaves the argument at its default.
const Argument* argument_of(const Node& node, const c10::FunctionSchema& schema, std::size_t index);

std::string target_of(const c10::OperatorHandle& op);

}  // namespace rehearse::graph
