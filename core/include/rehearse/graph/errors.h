// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>
#include <string>

namespace rehearse::graph {

// The base of all errors of graphs: a graph, a text, an archive or a call is malformed. what() is complete by itself;
// the fields tell programs the place. The graph is unchanged unless the function says otherwise.
class GraphError : public std::runtime_error {
 public:
  // `node` and `field` may be empty; otherwise what() begins with them.
  GraphError(std::string node, std::string field, const std::string& message);

  const std::string& node() const noexcept { return node_; }    // name of the node at fault
  const std::string& field() const noexcept { return field_; }  // "args[1]", "target", "kwargs.dtype", ...

 private:
  std::string node_;
  std::string field_;
};

}  // namespace rehearse::graph
