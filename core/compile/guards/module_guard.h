// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse/compile/guard_failure.h>

namespace torch::nn {
class Module;
}

namespace rehearse::compiler {

// That a module is the tree of modules, parameters and buffers that was captured, each of them the same object, and
// each module in the same mode, train() or eval(). Keeps them alive, so that their addresses stay theirs. What a member
// holds beside what is registered is not seen.
class ModuleGuard {
 public:
  ModuleGuard() = default;  // of no module: always holds
  explicit ModuleGuard(const std::shared_ptr<torch::nn::Module>& root);

  bool holds(GuardFailure* failure = nullptr) const;

 private:
  template <class T>
  struct Named {
    std::string name;
    T object;
  };
  struct Branch {
    std::shared_ptr<torch::nn::Module> module;
    bool trains = false;
    std::string path = {};  // "", "encoder.0"
    std::vector<Named<std::shared_ptr<torch::nn::Module>>> children = {};
    std::vector<Named<at::Tensor>> parameters = {}, buffers = {};
  };

  static Branch branch_of(std::shared_ptr<torch::nn::Module> module, std::string path);
  static bool holds_branch(const Branch& branch, GuardFailure* failure);
  template <class Dict, class T>
  static bool holds_items(const Branch& branch, const Dict& now, const std::vector<Named<T>>& captured,
                          const char* what, GuardFailure* failure);

  std::vector<Branch> branches_;
};

}  // namespace rehearse::compiler
