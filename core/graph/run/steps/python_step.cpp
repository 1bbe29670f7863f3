// SPDX-License-Identifier: BSD-3-Clause
#include <stdexcept>

#include "graph/run/python/python_functions.h"
#include "graph/run/python/symbolic_numbers.h"
#include "graph/run/steps/steps.h"

namespace rehearse::graph {
namespace {

class PythonStep : public Step {
 public:
  PythonStep(const Node& node, const PythonFunction& function)
      : node_(node), function_(function), parameters_(bind_parameters(node, function)) {}

  c10::IValue run(const ValueOf& value_of) const override {
    std::vector<c10::IValue> arguments;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      arguments.push_back(to_ivalue(*parameters_[i], value_of, node_, "args[" + std::to_string(i) + "]"));
    }
    if (std::optional<c10::IValue> symbolic = call_symbolically(node_.target(), arguments)) return *std::move(symbolic);
    try {
      return function_.call(arguments);
    } catch (const std::invalid_argument& error) {
      throw GraphError(node_.name(), "args", node_.target() + ": " + error.what());
    }
  }

 private:
  const Node& node_;
  const PythonFunction& function_;
  std::vector<const Argument*> parameters_;
};

}  // namespace

std::unique_ptr<Step> make_python_step(const Node& node) {
  const PythonFunction* function = find_python_function(node.target());
  return function != nullptr ? std::make_unique<PythonStep>(node, *function) : nullptr;
}

}  // namespace rehearse::graph
