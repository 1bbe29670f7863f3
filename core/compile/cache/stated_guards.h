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

// Collects the guards that a compilation adds to the guards of the capture, for example by recording a backward. The
// file of a stored graph contains these guards.
class StatedGuards {
 public:
  // Make it before the graph is compiled. `shapes`: null for a graph without symbols.
  explicit StatedGuards(std::shared_ptr<shapes::ShapeEnv> shapes);

  // The guards added since this object was made. Throws std::runtime_error if compiling stated facts that a file cannot
  // hold.
  graph::List added() const;
  // Adds guards from a file, in place of compiling. Throws std::exception if they cannot belong to the same graph.
  void add(const graph::List& guards) const;

 private:
  std::shared_ptr<shapes::ShapeEnv> shapes_;
  std::size_t guards_ = 0, asserts_ = 0, unbacked_ = 0;
};

}  // namespace rehearse::compiler
