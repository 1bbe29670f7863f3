// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
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

// Notes the mode switches of the calling fiber from construction on, so that undo() can take them back. Objects of this
// class must lie on the stack, in the frame that calls the code: they do not note modules in the code's own frames,
// which no longer exist when undo() runs.
class ModeSwitches {
 public:
  ModeSwitches();
  ModeSwitches(const ModeSwitches&) = delete;
  ModeSwitches& operator=(const ModeSwitches&) = delete;
  ~ModeSwitches();

  // Switches the modules back to their modes at construction. Modules that have been destroyed do not count. Returns
  // the type of a module that is in another mode and that no shared_ptr owns; such a module may have been destroyed,
  // so undo() leaves it alone. Returns an empty text if there is none.
  std::string undo();

 private:
  const std::size_t begin_;
};

}  // namespace rehearse::compiler
