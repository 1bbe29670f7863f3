// SPDX-License-Identifier: BSD-3-Clause
#include "compile/module_guard.h"

#include <torch/nn/module.h>

namespace rehearse::compiler {

ModuleGuard::ModuleGuard(const std::shared_ptr<torch::nn::Module>& root) {
  if (!root) return;
  modes_.push_back({root, root->is_training(), ""});
  for (const auto& item : root->named_modules(/*name_prefix=*/{}, /*include_self=*/false)) {
    modes_.push_back({item.value(), item.value()->is_training(), item.key()});
  }
}

bool ModuleGuard::holds(GuardFailure* failure) const {
  for (const Mode& mode : modes_) {
    const bool trains = mode.module->is_training();
    if (trains == mode.trains) continue;
    if (failure) {
      *failure = {(mode.path.empty() ? "module" : mode.path) + ".is_training()", mode.trains ? "true" : "false",
                  trains ? "true" : "false", ""};
    }
    return false;
  }
  return true;
}

}  // namespace rehearse::compiler
