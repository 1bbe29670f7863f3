// SPDX-License-Identifier: BSD-3-Clause
#include "differential/program/propose.h"

#include <algorithm>
#include <exception>

#include <ATen/ExpandUtils.h>

#include "differential/program/net.h"
#include "differential/run/inputs.h"

namespace rehearse_test::differential {
namespace {

// Larger values make later calls slow.
constexpr std::int64_t kElementsMax = 2000;

bool broadcasts(at::IntArrayRef a, at::IntArrayRef b) {
  try {
    return at::infer_size(a, b).size() == std::max(a.size(), b.size());
  } catch (const std::exception&) {
    return false;
  }
}

bool covers(at::IntArrayRef a, at::IntArrayRef b) { return broadcasts(a, b) && at::infer_size(a, b) == a.vec(); }

}  // namespace

std::uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

bool Proposer::look(Answer answer) {
  const Scope scope = answer == Answer::Ask ? Scope::Blocks : Scope::Everywhere;
  const auto values_at = [&](Answer each) {
    at::manual_seed(program_.seed);
    Net net(program_);
    const CallSpec call = all_calls(program_.seed)[0];
    std::int64_t steps = call.steps;
    return interpret(program_, make_inputs(program_, call).arguments, call.count, steps, &net, each, scope).values;
  };
  try {
    values_ = values_at(answer == Answer::Ask ? Answer::First : answer);
    if (answer != Answer::Ask) return true;
    const Tensors second = values_at(Answer::Second);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (!second[i].defined()) values_[i] = at::Tensor();
    }
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

bool Proposer::suits(int value, char wants) const {
  const at::Tensor& found = tensor(value);
  if (!found.defined() || found.numel() > kElementsMax) return false;
  switch (wants) {
    case 'f':
      return found.scalar_type() == at::kDouble || found.scalar_type() == at::kFloat;
    case 'b':
      return found.scalar_type() == at::kBool;
    case 'i':
      return found.scalar_type() == at::kLong;
    default:
      return true;
  }
}

bool Proposer::matches(int value, int first, Match match) const {
  const at::IntArrayRef a = tensor(first).sizes(), b = tensor(value).sizes();
  switch (match) {
    case Match::Any:
      return true;
    case Match::Broadcasts:
      return broadcasts(a, b);
    case Match::Same:
      return a == b;
    case Match::Inner:
      return !a.empty() && !b.empty() && a.back() == b[b.size() > 1 ? b.size() - 2 : 0];
    case Match::Covers:
      return covers(a, b);
  }
  return false;
}

std::optional<int> Proposer::choose(char wants, const std::vector<int>& before, Match match, bool changed) {
  std::vector<int> fitting;
  // Only statements of the family "state" may change the module's own tensors, because such changes may extend autograd
  // graphs over several calls.
  const int free_end = program_.first_free() + static_cast<int>(free_names().size());
  for (int value = 0; value < static_cast<int>(values_.size()); ++value) {
    const bool free = value >= program_.first_free() && value < free_end;
    // The module's counter must not be an index, because sooner or later it is too large for one.
    if (free && (changed || wants == 'i')) continue;
    if (suits(value, wants) && (before.empty() || matches(value, before[0], match))) fitting.push_back(value);
  }
  if (fitting.empty()) return std::nullopt;
  // Prefers late values, so that programs become long chains.
  const int count = static_cast<int>(fitting.size());
  const int place = random_.below(2) == 0 ? std::max(random_.below(count), random_.below(count)) : random_.below(count);
  return fitting[static_cast<std::size_t>(place)];
}

Number Proposer::any_size(bool constants) {
  if (constants && random_.below(3) == 0) return {.add = 1 + random_.below(4)};
  if (constants && random_.below(8) == 0) return {.of = Number::kCount};
  for (int tries = 0; tries < 10; ++tries) {
    const int value = random_.below(static_cast<int>(values_.size()));
    if (!tensor(value).defined() || tensor(value).dim() == 0) continue;
    return {.of = value,
            .dimension = random_.below(static_cast<int>(tensor(value).dim())),
            .symbolic = random_.below(3) > 0};
  }
  return {.add = 2};
}

Number Proposer::draw(Draw what, const Statement& statement) {
  const int dim = statement.inputs.empty() ? 0 : static_cast<int>(tensor(statement.inputs[0]).dim());
  const bool symbolic = random_.below(3) > 0;
  const auto size_of_first = [&](std::int64_t add) {
    const std::int64_t asked = statement.numbers.empty() ? 0 : statement.numbers[0].add;
    const int place = static_cast<int>(asked < 0 ? asked + dim : asked);
    return Number{.add = add, .of = statement.inputs[0], .dimension = place, .symbolic = symbolic};
  };
  switch (what) {
    case Draw::Dimension:
      return {.add = random_.below(std::max(dim, 1)) - (random_.below(4) == 0 ? dim : 0)};
    case Draw::NewDimension:
      return {.add = random_.below(dim + 1)};
    case Draw::Index:
      return random_.below(2) == 0 ? Number{.add = random_.below(3) - 1} : size_of_first(-1);
    case Draw::Start:
      return random_.below(3) > 0 ? Number{.add = 1 + random_.below(2)} : size_of_first(-2);
    case Draw::Length:
      if (random_.below(2) == 0) return {.add = 1 + random_.below(2)};
      return size_of_first(statement.numbers[1].of == Number::kConstant ? -statement.numbers[1].add : -1);
    case Draw::Size:
      return any_size(true);
    case Draw::Few:
      return {.add = random_.below(2)};
    case Draw::Layer:
      return {.add = random_.below(std::max<int>(1, static_cast<int>(program_.layers.size())))};
  }
  return {};
}

std::optional<Statement> Proposer::fill_in(const Operation& operation) {
  Statement statement;
  statement.operation = &operation;
  for (const char* wants = operation.wants; *wants != 0; ++wants) {
    const auto chosen = choose(*wants, statement.inputs, operation.match,
                               operation.changes == static_cast<int>(statement.inputs.size()));
    if (!chosen) return std::nullopt;
    statement.inputs.push_back(*chosen);
  }
  for (const Draw what : operation.numbers) statement.numbers.push_back(draw(what, statement));
  static constexpr double kFactors[] = {0.5, 2, 1.5, 0.25, 1, 0.75};
  statement.factor = kFactors[random_.below(6)];
  const int next = values_of(program_);
  for (int i = 0; i < operation.outputs; ++i) statement.outputs.push_back(next + i);
  statement.blocks.resize(operation.control == Control::None ? 0 : operation.control == Control::Branch ? 2 : 1);
  return statement;
}

const Operation& Proposer::choose_operation() {
  const std::string& family = families_[static_cast<std::size_t>(random_.below(static_cast<int>(families_.size())))];
  std::vector<const Operation*> of_family;
  for (const Operation& each : operations()) {
    if (each.family == family) of_family.push_back(&each);
  }
  return *of_family.at(static_cast<std::size_t>(random_.below(static_cast<int>(of_family.size()))));
}

std::optional<Statement> Proposer::propose(bool may_nest) {
  const Operation& operation = choose_operation();
  if (operation.control != Control::None && !may_nest) return std::nullopt;
  if (operation.name == std::string("layer") && program_.layers.empty()) return std::nullopt;
  return fill_in(operation);
}

int Proposer::any_value() {
  const auto chosen = choose('a', {}, Match::Any);
  return chosen.value_or(0);
}

int Proposer::result() {
  if (random_.below(10) == 0) return random_.below(static_cast<int>(program_.arguments.size()));
  const auto chosen = choose(random_.below(5) > 0 ? 'f' : 'a', {}, Match::Any);
  return chosen.value_or(0);
}

}  // namespace rehearse_test::differential
