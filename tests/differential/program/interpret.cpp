// SPDX-License-Identifier: BSD-3-Clause
#include "differential/program/interpret.h"

#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/compile/watch.h>
#include <rehearse/parallel/checkpoint.h>

#include "differential/program/net.h"

namespace rehearse_test::differential {
namespace {

void add_used(const std::vector<Statement>& statements, std::set<int>& used);

// The values that a statement uses, and those that its blocks use.
void add_used(const Statement& statement, std::set<int>& used) {
  used.insert(statement.inputs.begin(), statement.inputs.end());
  for (const Number& number : statement.numbers) used.insert(number.of);
  for (const Block& block : statement.blocks) {
    used.insert(block.yields);
    add_used(block.statements, used);
  }
}

void add_used(const std::vector<Statement>& statements, std::set<int>& used) {
  for (const Statement& statement : statements) add_used(statement, used);
}

std::set<int> used_in(const Statement& statement) {
  std::set<int> used;
  add_used(statement, used);
  return used;
}

void add_outputs(const Statement& statement, std::set<int>& outputs) {
  for (const Block& block : statement.blocks) {
    for (const Statement& inside : block.statements) {
      outputs.insert(inside.outputs.begin(), inside.outputs.end());
      add_outputs(inside, outputs);
    }
  }
}

// The values that statements inside the statement's blocks compute.
std::set<int> outputs_in(const Statement& statement) {
  std::set<int> outputs;
  add_outputs(statement, outputs);
  return outputs;
}

// The result of a checkpoint's code, and all values by number.
struct BodyValues {
  at::Tensor result;
  Tensors all;
};

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
        return;
      case Control::Checkpoint:
        return checkpoint(statement, given);
    }
  }

  // To look into the block, the generator runs it without a checkpoint.
  void checkpoint(const Statement& statement, const Given& given) {
    if (scope_ == Scope::Everywhere && answer_ != Answer::Ask) {
      run(statement.blocks.at(0).statements);
      return give(statement, {yielded(statement)});
    }
    const auto code = [inside = inside_of(statement), versions = std::vector<std::int64_t>(),
                       &statement](const Tensors& inputs) mutable {
      return inside.run_in_checkpoint(statement, inputs, versions).result;
    };
    if (scope_ == Scope::Blocks) return give(statement, {rehearse::checkpoint(code, given.tensors)});
    give_all(statement, given);
  }

  // Runs a checkpoint of a program that returns every value. A graph drops code whose results nothing uses, and so
  // drops its errors. Therefore the checkpoint returns every value that its code computes, except for those that share
  // memory with a value from outside.
  void give_all(const Statement& statement, const Given& given) {
    const auto numbers = std::make_shared<std::vector<int>>();
    const auto code = [inside = inside_of(statement), versions = std::vector<std::int64_t>(), numbers,
                       &statement](const Tensors& inputs) mutable {
      const BodyValues found = inside.run_in_checkpoint(statement, inputs, versions);
      Tensors all = {found.result};
      numbers->clear();
      for (const int number : outputs_in(statement)) {
        const at::Tensor& value = found.all.at(static_cast<std::size_t>(number));
        if (!value.defined() || inside.gives_outside(value, inputs)) continue;
        all.push_back(value);
        numbers->push_back(number);
      }
      return all;
    };
    const Tensors all = rehearse::checkpoint(code, given.tensors);
    give(statement, {all.at(0)});
    for (std::size_t i = 0; i < numbers->size(); ++i) {
      values_.at(static_cast<std::size_t>(numbers->at(i))) = all.at(i + 1);
    }
  }

  // An interpreter with the values that the statement's block uses.
  Interpreter inside_of(const Statement& statement) const {
    Interpreter inside = *this;
    const std::set<int> used = used_in(statement);
    for (std::size_t i = 0; i < inside.values_.size(); ++i) {
      if (!used.contains(static_cast<int>(i))) inside.values_[i] = at::Tensor();
    }
    return inside;
  }

  // Runs a copy of this interpreter, because the backward runs the code again. `versions` is empty before the first
  // run. That run sets it to the versions of tensors from outside, and the second run compares.
  BodyValues run_in_checkpoint(const Statement& statement, const Tensors& inputs, std::vector<std::int64_t>& versions) {
    Interpreter running = *this;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      running.values_.at(static_cast<std::size_t>(statement.inputs[i])) = inputs[i];
    }
    const std::vector<std::int64_t> before = versions_outside();
    running.run(statement.blocks.at(0).statements);
    const at::Tensor result = running.yielded(statement);
    if (versions_outside() != before || (!versions.empty() && versions != before)) {
      throw std::logic_error("what a checkpoint uses from outside is changed in place, and it runs twice");
    }
    versions = before;
    // Asks whether tensors share memory. A capture would refuse this question.
    if (net_ != nullptr && !rehearse::compiler::is_watching() && gives_outside(result, inputs)) {
      net_->gave_outside = true;
      if (answer_ != Answer::Ask)
        throw std::logic_error(
            "a checkpoint gives a tensor from outside: in a graph it is that tensor, or a view of it");
    }
    return {result, std::move(running.values_)};
  }

  bool gives_outside(const at::Tensor& result, const Tensors& inputs) const {
    const auto is_it = [&](const at::Tensor& tensor) { return tensor.defined() && tensor.is_alias_of(result); };
    return std::any_of(values_.begin(), values_.end(), is_it) || std::any_of(inputs.begin(), inputs.end(), is_it);
  }

  // Empty for programs under test: the generator has ruled out that their checkpoints change tensors from outside.
  std::vector<std::int64_t> versions_outside() const {
    std::vector<std::int64_t> versions;
    if (answer_ == Answer::Ask) return versions;
    const auto add = [&](const at::Tensor& tensor) { versions.push_back(tensor.defined() ? tensor._version() : 0); };
    for (const at::Tensor& value : values_) add(value);
    for (const at::Tensor& buffer : net_->buffers()) add(buffer);
    return versions;
  }

  at::Tensor yielded(const Statement& statement) const {
    const int yields = statement.blocks.at(0).yields;
    return yields >= 0 ? value(yields) : statement.operation->run(given_to(statement)).at(0);
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

  Given given_to(const Statement& statement) const {
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
