// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <rehearse/graph/argument.h>

namespace rehearse::shapes {
class ShapeEnv;
}

namespace rehearse::compiler {

// What compiling a graph asks of its sizes, beyond what its capture has asked: the guards that recording a backward
// adds. A graph that is read from a file brings them along.
class StatedGuards {
 public:
  // Before the graph is compiled. `shapes`: null for a graph without symbols.
  explicit StatedGuards(std::shared_ptr<shapes::ShapeEnv> shapes);

  // After it has been compiled. Throws std::runtime_error where it stated what no file can bring along.
  graph::List added() const;
  // In the place of compiling. Throws std::exception where the list cannot have come from the same graph.
  void add(const graph::List& guards) const;

 private:
  std::shared_ptr<shapes::ShapeEnv> shapes_;
  std::size_t guards_ = 0, asserts_ = 0, unbacked_ = 0;
};

}  // namespace rehearse::compiler
