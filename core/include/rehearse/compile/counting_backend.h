// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <rehearse/compile/backend.h>

namespace rehearse::compiler {

// Counts the graphs that it gets and lets another back end compile them ("eager" by default). For tests of how a
// function is split and how often it is compiled. Pass it as CompileOptions::backend and keep a pointer to it.
class CountingBackend final : public Backend {
 public:
  explicit CountingBackend(std::shared_ptr<Backend> inner = make_backend("eager"));

  std::string name() const override { return "counting"; }
  CompiledGraph compile(const BackendInput& input) override;

  std::size_t graphs() const noexcept { return graphs_.size(); }  // calls of compile()
  std::size_t nodes() const noexcept;                             // in all graphs, without placeholders and outputs
  // The graphs, in the order of the calls.
  const std::vector<std::shared_ptr<graph::GraphModule>>& modules() const noexcept { return graphs_; }

 private:
  std::shared_ptr<Backend> inner_;
  std::vector<std::shared_ptr<graph::GraphModule>> graphs_;
};

}  // namespace rehearse::compiler
