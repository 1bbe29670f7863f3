// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include <rehearse/compile/backend.h>
#include <rehearse/graph/graph_module.h>

namespace rehearse::compiler {

// Runs a graph node by node through the dispatcher, under the caller's autograd.
CompiledGraph by_operators(std::shared_ptr<const graph::GraphModule> module);

// Runs graphs with by_operators().
class EagerBackend final : public Backend {
 public:
  std::string name() const override { return "eager"; }
  CompiledGraph compile(const BackendInput& input) override;
};

}  // namespace rehearse::compiler
