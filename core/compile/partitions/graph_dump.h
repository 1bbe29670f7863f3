// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>

#include <rehearse/compile/compile_options.h>
#include <rehearse/graph/graph_module.h>

namespace rehearse::compiler {

// Writes the graphs of one function on one rank to CompileOptions::dump_folder.
class GraphDump {
 public:
  // Keeps a reference to the options.
  explicit GraphDump(const CompileOptions& options) : options_(options) {}

  // Does nothing without a folder. Throws CompileError with the path if the file cannot be written.
  void write(const std::string& graph, const graph::GraphModule& module);

 private:
  const CompileOptions& options_;
  std::size_t written_ = 0;
};

}  // namespace rehearse::compiler
