// SPDX-License-Identifier: BSD-3-Clause
#include "differential/program/text.h"

#include <cctype>
#include <set>
#include <sstream>

#include "differential/program/net.h"
#include "differential/program/operation.h"

namespace rehearse_test::differential {
namespace {

std::string name_of(const Program& program, int value) {
  const int free = value - program.first_free();
  if (free < 0) return "x" + std::to_string(value);
  if (free < static_cast<int>(free_names().size())) return free_names()[static_cast<std::size_t>(free)];
  return "v" + std::to_string(value);
}

std::string text_of(const Program& program, const Number& number) {
  if (number.of == Number::kConstant) return std::to_string(number.add);
  std::string text = "count";
  if (number.of != Number::kCount) {
    text = name_of(program, number.of) + (number.symbolic ? ".sym_size(" : ".size(") +
           std::to_string(number.dimension) + ")";
  }
  if (number.add == 0) return text;
  return text + (number.add < 0 ? " - " : " + ") + std::to_string(std::abs(number.add));
}

std::string factor_text(double factor) {
  std::ostringstream out;
  out << factor;
  return out.str();
}

std::string expression(const Program& program, const Statement& statement) {
  const std::string form = statement.operation->text;
  std::string text;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const bool numbered = i + 1 < form.size() && std::isdigit(static_cast<unsigned char>(form[i + 1])) != 0;
    const std::size_t which = numbered ? static_cast<std::size_t>(form[i + 1] - '0') : 0;
    if (numbered && form[i] == '$') {
      text += name_of(program, statement.inputs.at(which));
    } else if (numbered && form[i] == '#') {
      text += text_of(program, statement.numbers.at(which));
    } else if (numbered && form[i] == '@') {
      text += "layer" + text_of(program, statement.numbers.at(which));
    } else if (form[i] == '%') {
      text += factor_text(statement.factor);
      continue;
    } else {
      text += form[i];
      continue;
    }
    ++i;
  }
  return text;
}

class Writer {
 public:
  explicit Writer(const Program& program) : program_(program) {}

  void write(const std::vector<Statement>& statements, int depth) {
    for (const Statement& statement : statements) write(statement, depth);
  }

  std::string text() const { return out_.str(); }

 private:
  void write(const Statement& statement, int depth) {
    switch (statement.operation->control) {
      case Control::None:
        line(depth, assigned(statement) + expression(program_, statement) + ";");
        break;
      case Control::Branch:
        write_branch(statement, depth);
        break;
      case Control::NoGrad:
        line(depth, "{");
        line(depth + 1, expression(program_, statement));
        write(statement.blocks.at(0).statements, depth + 1);
        line(depth, "}");
        break;
      case Control::ForEach:
        line(depth, "for (at::Tensor " + name_of(program_, statement.outputs.at(0)) + " : " +
                        expression(program_, statement) + ") {");
        write(statement.blocks.at(0).statements, depth + 1);
        line(depth, "}");
        break;
      case Control::Checkpoint:
        write_checkpoint(statement, depth);
    }
  }

  // The lambda's parameters have the names of the statement's inputs.
  void write_checkpoint(const Statement& statement, int depth) {
    std::string parameters, sum;
    for (const int input : statement.inputs) {
      parameters += (parameters.empty() ? "" : ", ") + ("at::Tensor " + name_of(program_, input));
      sum += (sum.empty() ? "" : " + ") + name_of(program_, input);
    }
    line(depth, assigned(statement) + "rehearse::checkpoint([=](" + parameters + ") {");
    const Block& block = statement.blocks.at(0);
    write(block.statements, depth + 1);
    if (statement.inputs.size() == 1) sum += " + 0";
    line(depth + 1, "return " + (block.yields >= 0 ? name_of(program_, block.yields) : sum) + ";");
    line(depth, "}, " + expression(program_, statement) + ");");
  }

  void write_branch(const Statement& statement, int depth) {
    if (!statement.outputs.empty()) line(depth, "at::Tensor " + name_of(program_, statement.outputs[0]) + ";");
    line(depth, "if (" + expression(program_, statement) + ") {");
    write_block(statement, 0, depth);
    line(depth, "} else {");
    write_block(statement, 1, depth);
    line(depth, "}");
  }

  void write_block(const Statement& statement, std::size_t which, int depth) {
    const Block& block = statement.blocks.at(which);
    write(block.statements, depth + 1);
    if (block.yields < 0 || statement.outputs.empty()) return;
    line(depth + 1, name_of(program_, statement.outputs[0]) + " = " + name_of(program_, block.yields) + ";");
  }

  std::string assigned(const Statement& statement) const {
    if (statement.outputs.empty()) return "";
    if (statement.outputs.size() == 1) return "at::Tensor " + name_of(program_, statement.outputs[0]) + " = ";
    std::string names;
    for (const int output : statement.outputs) names += (names.empty() ? "" : ", ") + name_of(program_, output);
    return "auto [" + names + "] = ";
  }

  void line(int depth, const std::string& text) {
    out_ << std::string(static_cast<std::size_t>(2 * depth), ' ') << text << "\n";
  }

  const Program& program_;
  std::ostringstream out_;
};

const char* text_of(Form form) {
  switch (form) {
    case Form::Plain:
      return "";
    case Form::Leaf:
      return ", requires_grad";
    case Form::Computed:
      return ", computed from a leaf";
    case Form::View:
      return ", a view of what is computed from a leaf";
    case Form::Transposed:
      return ", transposed in memory";
    case Form::Sliced:
      return ", every second row of a tensor";
    case Form::SameAsBefore:
      return ", the same tensor as the one before";
    case Form::Overlapping:
      return ", shares memory with the one before";
  }
  return "";
}

std::string text_of(const Argument& argument) {
  std::string text;
  for (const Size& size : argument.sizes) {
    text += (text.empty() ? "[" : ", ") + (size.varies == Size::kFixed
                                               ? std::to_string(size.fixed)
                                               : std::string(1, static_cast<char>('N' + size.varies)));
  }
  return (text.empty() ? "[" : text) + "] " + c10::toString(argument.dtype) + text_of(argument.form) +
         (argument.odd ? ", with NaN and infinity" : "");
}

const char* text_of(Backward backward) {
  switch (backward) {
    case Backward::AllTogether:
      return "backward from all results that require a gradient, with gradients 1, 2, 3, ...";
    case Backward::SumOfAll:
      return "backward from the sum of all results that require a gradient";
    case Backward::FirstAlone:
      return "backward from the first result that requires a gradient";
    case Backward::OneByOne:
      return "backward from each result, one after the other";
    case Backward::None:
      return "no backward";
  }
  return "";
}

const char* text_of(Change change) {
  switch (change) {
    case Change::None:
      return "";
    case Change::Result:
      return ", after mul_(2) of the first result that requires one";
    case Change::Argument:
      return ", after mul_(2) of the first argument of numbers";
  }
  return "";
}

}  // namespace

std::string text_of(const Program& program) {
  Writer writer(program);
  std::ostringstream out;
  for (std::size_t i = 0; i < program.arguments.size(); ++i) {
    out << "// x" << i << ": " << text_of(program.arguments[i]) << "\n";
  }
  for (std::size_t i = 0; i < program.layers.size(); ++i) out << "// layer" << i << ": " << program.layers[i] << "\n";
  out << "// " << text_of(program.backward) << text_of(program.change) << "\n";
  writer.write(program.statements, 0);
  out << writer.text() << "return {";
  for (std::size_t i = 0; i < program.results.size(); ++i) {
    out << (i ? ", " : "") << name_of(program, program.results[i]);
  }
  out << "};\n";
  return out.str();
}

}  // namespace rehearse_test::differential
