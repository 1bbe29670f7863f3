// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/compile/backend.h>

namespace rehearse::compiler {

// Runs the graph node by node through the dispatcher, with autograd as the caller has it.
class EagerBackend final : public Backend {
 public:
  std::string name() const override { return "eager"; }
  CompiledGraph compile(const BackendInput& input) override;
};

}  // namespace rehearse::compiler
