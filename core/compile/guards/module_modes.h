// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace rehearse::compiler {

// A number for the modes, train() or eval(), of all modules, as far as the calling fiber has changed them. The number
// is the same as at an earlier time if each module is in the same mode as then. It covers all modules, because a
// function may use any module and nothing tells which.
std::uint64_t module_modes() noexcept;

// The calling fiber's last mode switch that had an effect, such as "torch::nn::DropoutImpl to eval()"; empty if there
// is none.
std::string last_mode_switch();

}  // namespace rehearse::compiler
