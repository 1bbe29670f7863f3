// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/graph/exported_program.h>
#include <rehearse/graph/interpreter.h>

namespace rehearse::graph {

// Runs an exported program. If the program changes parameters or buffers, they stay changed in the program's
// attributes. If it changes an input, run() writes to the caller's tensor.
class ProgramRunner {
 public:
  // Throws GraphError for nodes that the interpreter does not support, and for attributes without data.
  explicit ProgramRunner(ExportedProgram program);

  // `inputs`: the user's inputs, flattened, including constants. Returns the outputs, flattened, except those that are
  // new contents of a tensor. Throws GraphError if the number of inputs is wrong. Also throws GraphError, which names
  // the input, if a dtype, sizes, a symbol or a constant does not fit.
  std::vector<c10::IValue> run(const std::vector<c10::IValue>& inputs) const;

  const ExportedProgram& program() const noexcept { return program_; }

 private:
  ExportedProgram program_;
  Interpreter interpreter_;
};

}  // namespace rehearse::graph
