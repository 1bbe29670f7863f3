// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <ATen/core/dispatch/Dispatcher.h>

namespace rehearse::graph {

// The operator of LibTorch's dispatcher that a target names: `torch.ops.aten.add.Tensor` is aten::add.Tensor, and
// `torch.ops.aten.relu.default` is aten::relu. None for any other target, and for operators that are not registered.
std::optional<c10::OperatorHandle> find_operator(std::string_view target);

// The target that names this operator.
std::string target_of(const c10::OperatorHandle& op);

}  // namespace rehearse::graph
