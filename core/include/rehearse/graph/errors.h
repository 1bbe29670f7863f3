// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>
#include <string>

namespace rehearse::graph {

// What all errors of this room have in common: a graph, a text, an archive or a call is not as it must be.
// what() is complete by itself; the fields name the place for programs. The graph is unchanged unless the
// function says so.
class GraphError : public std::runtime_error {
 public:
  // `node` and `field` may be empty; where they are not, what() begins with them.
  GraphError(std::string node, std::string field, const std::string& message);

  const std::string& node() const noexcept { return node_; }    // name of the node at fault
  const std::string& field() const noexcept { return field_; }  // "args[1]", "target", "kwargs.dtype", ...

 private:
  std::string node_;
  std::string field_;
};

}  // namespace rehearse::graph
