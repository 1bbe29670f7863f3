// SPDX-License-Identifier: BSD-3-Clause
#include "compile/eager_backend.h"

#include <memory>
#include <utility>

#include <rehearse/graph/interpreter.h>

namespace rehearse::compiler {

CompiledGraph EagerBackend::compile(const BackendInput& input) {
  auto interpreter = std::make_shared<graph::Interpreter>(input.module);
  return [interpreter](std::vector<c10::IValue> inputs) { return interpreter->run(std::move(inputs)); };
}

}  // namespace rehearse::compiler
