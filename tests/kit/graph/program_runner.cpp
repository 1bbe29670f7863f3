// SPDX-License-Identifier: BSD-3-Clause
#include "kit/graph/program_runner.h"

#include <map>
#include <string>
#include <utility>

#include <ATen/core/grad_mode.h>

namespace rehearse::graph {
namespace {

std::string list_of(const std::vector<SymInt>& sizes) {
  std::string text;
  for (const SymInt& size : sizes) text += (text.empty() ? "[" : ", ") + to_string(size);
  return text.empty() ? "[]" : text + "]";
}

// Checks the user's inputs against those for which the program was exported.
class InputCheck {
 public:
  explicit InputCheck(const ExportedProgram& program) : program_(program) {}

  void check(const InputSpec& input, const Node& placeholder, const c10::IValue& value) {
    name_ = input.name;
    if (input.kind == InputSpec::Kind::ConstantInput) return check_constant(input.constant, value);
    if (placeholder.meta().value == nullptr) return;
    if (const TensorMeta* tensor = placeholder.meta().tensor()) return check_tensor(*tensor, value);
    if (const SymScalarMeta* scalar = placeholder.meta().value->scalar()) check_scalar(*scalar, value);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw GraphError(name_, "input", message); }

  void check_constant(const Argument& expected, const c10::IValue& value) const {
    const bool same =
        (expected.is_none() && value.isNone()) ||
        (expected.is<bool>() && value.isBool() && value.toBool() == expected.as<bool>()) ||
        (expected.is<std::int64_t>() && value.isInt() && value.toInt() == expected.as<std::int64_t>()) ||
        (expected.is<double>() && value.isDouble() && value.toDouble() == expected.as<double>()) ||
        (expected.is<std::string>() && value.isString() && value.toStringRef() == expected.as<std::string>());
    if (!same) fail("is a constant of the program, and was given another value than at export");
  }

  void check_scalar(const SymScalarMeta& expected, const c10::IValue& value) {
    using Kind = SymScalarMeta::Kind;
    if (expected.kind == Kind::Int && !value.isInt()) fail("must be an int, and is " + value.tagKind());
    if (expected.kind == Kind::Float && !value.isDouble()) fail("must be a float, and is " + value.tagKind());
    if (expected.kind == Kind::Bool && !value.isBool()) fail("must be a bool, and is " + value.tagKind());
    if (value.isInt()) bind(expected.expression, value.toInt(), "the value");
  }

  void check_tensor(const TensorMeta& expected, const c10::IValue& value) {
    if (!value.isTensor()) fail("must be a tensor, and is " + value.tagKind());
    const at::Tensor& tensor = value.toTensor();
    if (tensor.scalar_type() != expected.dtype) {
      fail(std::string("must be ") + c10::toString(expected.dtype) + ", and is " + c10::toString(tensor.scalar_type()));
    }
    const auto rank = static_cast<std::size_t>(tensor.dim());
    bool fits = rank == expected.sizes.size();
    for (std::size_t i = 0; fits && i < rank; ++i) {
      fits = expected.sizes[i].is_symbolic() || expected.sizes[i].number() == tensor.size(static_cast<std::int64_t>(i));
    }
    if (!fits) {
      fail("must have sizes " + list_of(expected.sizes) + ", and has " +
           list_of({tensor.sizes().begin(), tensor.sizes().end()}));
    }
    for (std::size_t i = 0; i < rank; ++i) {
      if (expected.sizes[i].is_symbolic()) {
        bind(expected.sizes[i].expression(), tensor.size(static_cast<std::int64_t>(i)), "size " + std::to_string(i));
      }
    }
  }

  // Checks that a symbol has one value, and that the value is in the symbol's range. The program itself checks
  // expressions of symbols.
  void bind(const SymExpr& expression, std::int64_t value, const std::string& what) {
    if (expression.symbol() == nullptr) return;
    const std::string& symbol = *expression.symbol();
    const auto range = program_.ranges.find(symbol);
    if (range != program_.ranges.end() &&
        ((range->second.min && value < *range->second.min) || (range->second.max && value > *range->second.max))) {
      fail(what + " is " + std::to_string(value) + "; " + symbol + " must be in " + text(range->second));
    }
    const auto [known, is_new] = symbols_.emplace(symbol, std::pair(value, name_));
    if (!is_new && known->second.first != value) {
      fail(what + " is " + std::to_string(value) + "; it must be " + std::to_string(known->second.first) + ", as " +
           symbol + " of '" + known->second.second + "' is");
    }
  }

  static std::string text(const SymbolRange& range) {
    return "[" + (range.min ? std::to_string(*range.min) : "-inf") + ", " +
           (range.max ? std::to_string(*range.max) : "inf") + "]";
  }

  const ExportedProgram& program_;
  std::string name_;
  std::map<std::string, std::pair<std::int64_t, std::string>> symbols_;
};

using Tensors = std::map<std::string, at::Tensor>;  // tensors that results may change, by name

bool is_mutation(const OutputSpec& output) {
  using Kind = OutputSpec::Kind;
  return output.kind == Kind::BufferMutation || output.kind == Kind::ParameterMutation ||
         output.kind == Kind::InputMutation;
}

// Writes results that are the new contents of a tensor to that tensor, and returns the others.
std::vector<c10::IValue> user_outputs(const std::vector<OutputSpec>& specs, const std::vector<c10::IValue>& results,
                                      const Tensors& tensors) {
  if (results.size() != specs.size()) {
    throw GraphError(
        "", "outputs",
        "there are " + std::to_string(specs.size()) + " for " + std::to_string(results.size()) + " results");
  }
  const at::NoGradGuard no_grad;
  std::vector<c10::IValue> outputs;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string& target = specs[i].target;
    if (!is_mutation(specs[i])) {
      outputs.push_back(results[i]);
      continue;
    }
    const auto changed = tensors.find(target);
    if (changed == tensors.end()) throw GraphError("", "outputs", "there is no '" + target + "' to change");
    if (!results[i].isTensor()) throw GraphError("", "outputs", "'" + target + "' can be changed to a tensor only");
    changed->second.copy_(results[i].toTensor());
  }
  return outputs;
}

}  // namespace

ProgramRunner::ProgramRunner(ExportedProgram program) : program_(std::move(program)), interpreter_(program_.module) {
  const std::size_t placeholders = program_.module->graph().placeholders().size();
  if (placeholders != program_.inputs.size()) {
    throw GraphError("", "inputs",
                     "there are " + std::to_string(program_.inputs.size()) + " for " + std::to_string(placeholders) +
                         " placeholders");
  }
  for (const InputSpec& input : program_.inputs) {
    if (!input.target.empty() && program_.module->find_attribute(input.target) == nullptr) {
      throw GraphError(input.name, "target", "there is no attribute '" + input.target + "'");
    }
  }
  for (const auto& [name, attribute] : program_.module->attributes()) {
    if (!attribute.tensor.defined()) throw GraphError("", "attribute " + name, "has no data");
  }
}

std::vector<c10::IValue> ProgramRunner::run(const std::vector<c10::IValue>& inputs) const {
  std::size_t expected = 0;
  for (const InputSpec& input : program_.inputs) expected += input.target.empty() ? 1 : 0;
  if (inputs.size() != expected) {
    throw GraphError("", "inputs",
                     "there must be " + std::to_string(expected) + ", and there are " + std::to_string(inputs.size()));
  }
  InputCheck check(program_);
  Tensors tensors;
  std::vector<c10::IValue> values;
  auto given = inputs.begin();
  const std::vector<Node*> placeholders = program_.module->graph().placeholders();
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    const InputSpec& input = program_.inputs[i];
    if (input.target.empty()) {
      check.check(input, *placeholders[i], *given);
      values.push_back(*given++);
    } else {
      values.emplace_back(program_.module->find_attribute(input.target)->tensor);
    }
    if (values.back().isTensor()) tensors[input.target.empty() ? input.name : input.target] = values.back().toTensor();
  }
  return user_outputs(program_.outputs, interpreter_.run(std::move(values)), tensors);
}

}  // namespace rehearse::graph
