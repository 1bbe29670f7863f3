// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/graph/operators.h>

namespace rehearse::graph {
namespace {

constexpr std::string_view kPrefix = "torch.ops.";

}  // namespace

std::optional<c10::OperatorHandle> find_operator(std::string_view target) {
  if (!target.starts_with(kPrefix)) return std::nullopt;
  const std::string_view rest = target.substr(kPrefix.size());
  const std::size_t first = rest.find('.');
  const std::size_t last = rest.rfind('.');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  const std::string_view overload = rest.substr(last + 1);
  const std::string name =
      std::string(rest.substr(0, first)) + "::" + std::string(rest.substr(first + 1, last - first - 1));
  return c10::Dispatcher::singleton().findSchema({name, overload == "default" ? "" : std::string(overload)});
}

const Argument* argument_of(const Node& node, const c10::FunctionSchema& schema, std::size_t index) {
  const c10::Argument& formal = schema.arguments().at(index);
  if (!formal.kwarg_only() && index < node.args().size()) return &node.args()[index];
  return node.kwarg(formal.name());
}

std::string target_of(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  const std::size_t colons = name.name.find("::");
  return std::string(kPrefix) + name.name.substr(0, colons) + "." + name.name.substr(colons + 2) + "." +
         (name.overload_name.empty() ? "default" : name.overload_name);
}

}  // namespace rehearse::graph
