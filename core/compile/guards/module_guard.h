// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse/compile/guard_failure.h>

namespace torch::nn {
class Module;
}

namespace rehearse::compiler {

// Guards that the module tree is unchanged: the same submodule, parameter and buffer objects as at capture, and each
// module in the same mode, train() or eval(). Keeps these objects alive, so that their addresses stay unique. Members
// that are not registered with their module are not checked.
class ModuleGuard {
 public:
  ModuleGuard() = default;  // without a module: always holds
  explicit ModuleGuard(const std::shared_ptr<torch::nn::Module>& root);

  bool holds(GuardFailure* failure = nullptr) const;

 private:
  // A module of the tree, and how many children, parameters and buffers it has. Their addresses begin at index `first`
  // of objects_.
  struct Branch {
    const torch::nn::Module* module = nullptr;
    bool trains = false;
    std::uint32_t first = 0, children = 0, parameters = 0, buffers = 0;
  };

  void add(const std::shared_ptr<torch::nn::Module>& module, std::string path);
  template <class Dict>
  std::uint32_t add_objects(const Dict& items);
  static void prefetch(const Branch& branch) noexcept;
  bool holds_branch(const Branch& branch) const;
  GuardFailure failure_of(std::size_t branch) const;
  template <class Dict>
  bool find_failure(std::size_t branch, const Dict& now, std::size_t first, std::size_t count, const char* what,
                    GuardFailure& failure) const;

  // Data that each call compares lies close together. Data for messages, and references that keep objects alive, lie
  // elsewhere.
  std::vector<Branch> branches_;
  std::vector<const void*> objects_;  // children, parameters and buffers of each branch
  std::vector<std::string> paths_;    // the branches' paths: "", "encoder.0"
  std::vector<std::string> names_;    // the objects' names within their branch
  std::vector<std::shared_ptr<torch::nn::Module>> modules_;
  std::vector<at::Tensor> tensors_;
};

}  // namespace rehearse::compiler
