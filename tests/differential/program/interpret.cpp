// SPDX-License-Identifier: BSD-3-Clause
#include "differential/program/interpret.h"

#include <stdexcept>
#include <string>

#include "differential/program/net.h"

namespace rehearse_test::differential {
namespace {

class Interpreter {
 public:
  Interpreter(const Program& program, const Tensors& arguments, std::int64_t count, std::int64_t& steps, Net* net,
              Answer answer, Scope scope)
      : count_(count),
        steps_(&steps),
        net_(net),
        answer_(answer),
        scope_(scope),
        values_(static_cast<std::size_t>(values_of(program))) {
    std::size_t next = 0;
    for (const at::Tensor& argument : arguments) values_[next++] = argument;
    if (net == nullptr) return;
    for (const at::Tensor& free : net->free_tensors()) values_[next++] = free;
  }

  void run(const std::vector<Statement>& statements) {
    for (const Statement& statement : statements) run(statement);
  }

  const at::Tensor& value(int number) const {
    const at::Tensor& found = values_.at(static_cast<std::size_t>(number));
    if (!found.defined()) throw std::logic_error("value " + std::to_string(number) + " is missing");
    return found;
  }

  Tensors& values() { return values_; }

 private:
  void run(const Statement& statement) {
    const Operation& operation = *statement.operation;
    const Given given = given_to(statement);
    switch (operation.control) {
      case Control::None:
        return give(statement, operation.run(given));
      case Control::Branch:
        return branch(statement, given);
      case Control::NoGrad: {
        const at::NoGradGuard no_grad;
        return run(statement.blocks.at(0).statements);
      }
      case Control::ForEach:
        for (const at::Tensor& part : operation.run(given)) {
          give(statement, {part});
          run(statement.blocks.at(0).statements);
        }
        forget(statement.blocks.at(0).statements);
        if (scope_ == Scope::Blocks) values_.at(static_cast<std::size_t>(statement.outputs[0])) = at::Tensor();
    }
  }

  void branch(const Statement& statement, const Given& given) {
    const bool asked = !statement.operation->run(given).empty();
    const bool first = answer_ == Answer::Ask ? asked : answer_ == Answer::First;
    const Block& block = statement.blocks.at(first ? 0 : 1);
    run(block.statements);
    const at::Tensor yielded = block.yields >= 0 ? value(block.yields) : at::Tensor();
    forget(block.statements);
    if (yielded.defined()) give(statement, {yielded});
  }

  void forget(const std::vector<Statement>& statements) {
    if (scope_ == Scope::Everywhere) return;
    for (const Statement& statement : statements) {
      for (const int output : statement.outputs) values_.at(static_cast<std::size_t>(output)) = at::Tensor();
      for (const Block& block : statement.blocks) forget(block.statements);
    }
  }

  void give(const Statement& statement, const Tensors& tensors) {
    for (std::size_t i = 0; i < statement.outputs.size(); ++i) {
      values_.at(static_cast<std::size_t>(statement.outputs[i])) = tensors.at(i);
    }
  }

  Given given_to(const Statement& statement) {
    Given given{{}, {}, statement.factor, net_, steps_};
    for (const int input : statement.inputs) given.tensors.push_back(value(input));
    for (const Number& number : statement.numbers) given.numbers.push_back(evaluate(number));
    return given;
  }

  c10::SymInt evaluate(const Number& number) const {
    if (number.of == Number::kConstant) return number.add;
    if (number.of == Number::kCount) return count_ + number.add;
    const at::Tensor& of = value(number.of);
    return number.symbolic ? of.sym_size(number.dimension) + number.add
                           : c10::SymInt(of.size(number.dimension) + number.add);
  }

  std::int64_t count_;
  std::int64_t* steps_;
  Net* net_;
  Answer answer_;
  Scope scope_;
  Tensors values_;
};

}  // namespace

Interpreted interpret(const Program& program, const Tensors& arguments, std::int64_t count, std::int64_t& steps,
                      Net* net, Answer answer, Scope scope) {
  const Scope used = program.returns_all ? Scope::Everywhere : scope;
  Interpreter interpreter(program, arguments, count, steps, net, answer, used);
  interpreter.run(program.statements);
  Interpreted interpreted;
  for (const int result : program.results) interpreted.results.push_back(interpreter.value(result));
  interpreted.values = std::move(interpreter.values());
  if (program.returns_all) {
    interpreted.results.clear();
    for (const at::Tensor& value : interpreted.values) {
      if (value.defined()) interpreted.results.push_back(value);
    }
  }
  return interpreted;
}

}  // namespace rehearse_test::differential
