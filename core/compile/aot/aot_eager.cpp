// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/compile/aot_eager.h>

#include <utility>

#include "compile/aot/aot_program.h"

namespace rehearse::compiler {

CompiledGraph AotEagerBackend::compile(const BackendInput& input) {
  capture::JointGraph joint = capture::capture_joint(input.module, input.example_inputs, input.shapes);
  capture::JointPartition partition = capture::partition_joint(joint);
  const auto program = std::make_shared<const AotProgram>(joint, partition, input.name);
  graphs_.push_back(std::make_shared<const Compiled>(Compiled{input.name, std::move(joint), std::move(partition)}));
  return [program](std::vector<c10::IValue> inputs) { return program->call(std::move(inputs)); };
}

}  // namespace rehearse::compiler
