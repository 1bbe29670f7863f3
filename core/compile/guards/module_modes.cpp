// SPDX-License-Identifier: BSD-3-Clause
#include "compile/guards/module_modes.h"

#include <typeinfo>

#include <c10/util/Type.h>
#include <torch/nn/module.h>

#include <rehearse_internal/exec/fiber_local.h>

namespace rehearse::compiler {
namespace {

struct ModuleModes {
  std::uint64_t number = 0;
  const std::type_info* last = nullptr;  // type of the last module that was switched
  bool is_last_on = false;
};
const exec::FiberLocal<ModuleModes> modes_of_fiber;

// Spreads an address over all bits, like the finaliser of MurmurHash3.
std::uint64_t spread(std::uint64_t bits) noexcept {
  bits ^= bits >> 33;
  bits *= 0xff51afd7ed558ccdULL;
  bits ^= bits >> 33;
  bits *= 0xc4ceb9fe1a85ec53ULL;
  return bits ^ bits >> 33;
}

// Switching the same module twice restores the number.
void note_change(const torch::nn::Module& module, bool on) {
  ModuleModes& modes = *modes_of_fiber;
  modes.number ^= spread(reinterpret_cast<std::uintptr_t>(&module));
  modes.last = &typeid(module);
  modes.is_last_on = on;
}

}  // namespace

std::uint64_t module_modes() noexcept {
  const ModuleModes* modes = modes_of_fiber.find();
  return modes != nullptr ? modes->number : 0;
}

std::string last_mode_switch() {
  const ModuleModes* modes = modes_of_fiber.find();
  if (modes == nullptr || modes->last == nullptr) return "";
  return c10::demangle(modes->last->name()) + (modes->is_last_on ? " to train()" : " to eval()");
}

}  // namespace rehearse::compiler

// Replaces LibTorch's function: the executable's definition takes precedence over that of a library, even in virtual
// tables. Does what LibTorch's function does, and notes the change.
void torch::nn::Module::train(bool on) {
  for (auto& child : children_) child.value()->train(on);
  if (is_training_ != on) rehearse::compiler::note_change(*this, on);
  is_training_ = on;
}
