// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace rehearse::graph {

// Targets, in fx's spelling, that several parts of this room need.
inline constexpr std::string_view kGetItem = "_operator.getitem";
inline constexpr std::string_view kSetGradEnabled = "torch._C._set_grad_enabled";
inline constexpr std::string_view kEnterAutocast = "torch.amp.autocast_mode._enter_autocast";
inline constexpr std::string_view kExitAutocast = "torch.amp.autocast_mode._exit_autocast";
inline constexpr std::string_view kHigherOrder = "torch.ops.higher_order.";  // prefix of higher-order operators
inline constexpr std::string_view kRegisterHook = "torch.ops.higher_order.register_hook";

}  // namespace rehearse::graph
