// SPDX-License-Identifier: BSD-3-Clause
#include "compile/guards/module_modes.h"

#include <functional>
#include <memory>
#include <set>
#include <typeinfo>
#include <utility>
#include <vector>

#include <c10/util/Type.h>
#include <torch/nn/module.h>

#include <rehearse_internal/exec/fiber_local.h>

namespace rehearse::compiler {
namespace {

struct Switched {
  torch::nn::Module* module;
  const std::type_info* type;
  std::weak_ptr<torch::nn::Module> owner;  // never set if no shared_ptr owns the module
  bool is_owned;
  bool is_above;  // has a higher address than the frame that noted the switch; stacks grow downwards
};

struct ModuleModes {
  std::uint64_t number = 0;
  const std::type_info* last = nullptr;  // type of the last module that was switched
  bool is_last_on = false;
  std::size_t watchers = 0;             // objects of ModeSwitches
  std::vector<Switched> switched = {};  // since the outermost watcher began
  bool switches_one = false;            // train() leaves children alone
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

bool is_lower(const void* left, const void* right) noexcept { return std::less<const void*>()(left, right); }

void note_for_undo(ModuleModes& modes, torch::nn::Module& module) {
  if (modes.watchers == 0) return;
  std::weak_ptr<torch::nn::Module> owner = module.weak_from_this();
  const bool is_owned = !owner.expired();
  modes.switched.push_back(
      {&module, &typeid(module), std::move(owner), is_owned, is_lower(__builtin_frame_address(0), &module)});
}

// Switching the same module twice restores the number.
void note_change(torch::nn::Module& module, bool on) {
  ModuleModes& modes = *modes_of_fiber;
  note_for_undo(modes, module);
  modes.number ^= spread(reinterpret_cast<std::uintptr_t>(&module));
  modes.last = &typeid(module);
  modes.is_last_on = on;
}

// Not the module's own train(), which may do more.
void switch_alone(ModuleModes& modes, torch::nn::Module& module) {
  modes.switches_one = true;
  module.torch::nn::Module::train(!module.is_training());
  modes.switches_one = false;
}

bool switches_one() noexcept {
  const ModuleModes* modes = modes_of_fiber.find();
  return modes != nullptr && modes->switches_one;
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

ModeSwitches::ModeSwitches() : begin_(modes_of_fiber->switched.size()) { ++modes_of_fiber->watchers; }

ModeSwitches::~ModeSwitches() {
  ModuleModes& modes = *modes_of_fiber;
  if (--modes.watchers == 0) modes.switched.clear();
}

std::string ModeSwitches::undo() {
  ModuleModes& modes = *modes_of_fiber;
  std::vector<Switched> noted(modes.switched.begin() + static_cast<std::ptrdiff_t>(begin_), modes.switched.end());
  std::erase_if(noted, [this](const Switched& each) {
    return each.is_owned ? each.owner.expired() : each.is_above && is_lower(each.module, this);
  });
  std::set<const torch::nn::Module*> in_other_mode;
  for (const Switched& each : noted) {
    if (!in_other_mode.insert(each.module).second) in_other_mode.erase(each.module);
  }
  std::string left;
  for (const Switched& each : noted) {
    if (in_other_mode.erase(each.module) == 0) continue;
    if (each.is_owned) {
      switch_alone(modes, *each.module);
    } else if (left.empty()) {
      left = c10::demangle(each.type->name());
    }
  }
  return left;
}

}  // namespace rehearse::compiler

// Replaces LibTorch's function: the executable's definition takes precedence over that of a library, even in virtual
// tables. Does what LibTorch's function does, and notes the change.
void torch::nn::Module::train(bool on) {
  if (!rehearse::compiler::switches_one()) {
    for (auto& child : children_) child.value()->train(on);
  }
  if (is_training_ != on) rehearse::compiler::note_change(*this, on);
  is_training_ = on;
}
