// SPDX-License-Identifier: BSD-3-Clause
#include "compile/partitions/eager_backend.h"

#include <memory>
#include <utility>

#include <rehearse/graph/interpreter.h>

namespace rehearse::compiler {

CompiledGraph by_operators(std::shared_ptr<const graph::GraphModule> module) {
  const auto interpreter = std::make_shared<const graph::Interpreter>(std::move(module));
  return [interpreter](std::vector<c10::IValue> inputs) { return interpreter->run(std::move(inputs)); };
}

CompiledGraph EagerBackend::compile(const BackendInput& input) {
  CompiledGraph compiled = by_operators(input.module);
  compiled.outputs = outputs_of(input);
  return compiled;
}

}  // namespace rehearse::compiler
