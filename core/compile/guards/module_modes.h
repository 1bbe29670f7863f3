// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace rehearse::compiler {

// A number that says in which of the modes train() and eval() all modules are, as far as the calling fiber has changed
// them: equal where each module is in the same mode. A function may find modules anywhere, and nothing tells which.
std::uint64_t module_modes() noexcept;

// The last switch of the calling fiber that changed a module, as "torch::nn::DropoutImpl to eval()"; empty without one.
std::string last_mode_switch();

}  // namespace rehearse::compiler
