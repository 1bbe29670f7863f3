// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/errors.h>

#include <utility>

namespace rehearse::graph {
namespace {

std::string with_place(const std::string& node, const std::string& field, const std::string& message) {
  if (node.empty()) return field.empty() ? message : field + ": " + message;
  return "node '" + node + "'" + (field.empty() ? "" : ", " + field) + ": " + message;
}

}  // namespace

GraphError::GraphError(std::string node, std::string field, const std::string& message)
    : std::runtime_error(with_place(node, field, message)), node_(std::move(node)), field_(std::move(field)) {}

}  // namespace rehearse::graph
