// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <rehearse/compile/guard_failure.h>

namespace torch::nn {
class Module;
}

namespace rehearse::compiler {

// That a module and all those below it are in the mode, train() or eval(), in which they were captured. Keeps them
// alive. A module that takes another one's place later is not seen.
class ModuleGuard {
 public:
  ModuleGuard() = default;  // of no module: always holds
  explicit ModuleGuard(const std::shared_ptr<torch::nn::Module>& root);

  bool holds(GuardFailure* failure = nullptr) const;

 private:
  struct Mode {
    std::shared_ptr<torch::nn::Module> module;
    bool trains;
    std::string path;  // "", "encoder.0"
  };
  std::vector<Mode> modes_;
};

}  // namespace rehearse::compiler
