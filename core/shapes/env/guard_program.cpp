// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/shapes/guard_program.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/shapes/lower.h>

namespace rehearse::shapes {

// Assigns registers: first the sources, then constants, then results of steps.
struct GuardProgram::Builder {
  using Value = std::uint32_t;

  explicit Builder(GuardProgram& program) : program(program), next(static_cast<Value>(program.sources())) {}

  Value number(std::int64_t number) {
    const auto [known, is_new] = numbers.try_emplace(number, kConstantsAt + program.constants_.size());
    if (is_new) program.constants_.push_back(number);
    return static_cast<Value>(known->second);
  }

  Value symbol(const std::string& name) { return program.source_of(name); }

  Value apply(Operation operation, Value left, Value right) {
    program.steps_.push_back({static_cast<std::uint8_t>(operation), left, right, next});
    return next++;
  }

  Value as_int(Value truth) { return truth; }

  std::optional<Value> find(const Expr& expr) {
    const auto found = values.find(expr);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  }

  void made(const Expr& expr, Value value) { values.emplace(expr, value); }

  // Constants are numbered from here until all of them are known; then placed() moves them behind the sources.
  static constexpr std::uint32_t kConstantsAt = 1U << 31;

  Value placed(Value value) const {
    const auto sources = static_cast<Value>(program.sources());
    const auto constants = static_cast<Value>(program.constants_.size());
    if (value >= kConstantsAt) return value - kConstantsAt + sources;
    return value < sources ? value : value + constants;
  }

  void place_registers() {
    for (Step& step : program.steps_)
      step = {step.operation, placed(step.left), placed(step.right), placed(step.result)};
    for (Check& check : program.checks_) {
      if (check.kind == Check::Kind::IsTrue) check.first = placed(check.first);
    }
    program.registers_ = next + program.constants_.size();
  }

  GuardProgram& program;
  Value next;
  std::map<std::int64_t, std::size_t> numbers;
  std::map<Expr, Value> values;
};

GuardProgram::GuardProgram(const ShapeEnv& env) {
  for (const SymbolSource& source : env.sources()) {
    source_names_.push_back(source.text);
    symbol_of_source_.push_back(env.backed()[source.symbol].name);
  }
  add_duck_shapes(env);
  add_ranges(env);
  add_guards(env);
}

std::uint32_t GuardProgram::source_of(const std::string& symbol) const {
  const auto found = std::ranges::find(symbol_of_source_, symbol);
  if (found == symbol_of_source_.end()) throw ShapeError("a guard names '" + symbol + "', which no input gives");
  return static_cast<std::uint32_t>(found - symbol_of_source_.begin());
}

void GuardProgram::add_duck_shapes(const ShapeEnv& env) {
  for (std::uint32_t i = 0; i < source_names_.size(); ++i) {
    const std::uint32_t first = source_of(symbol_of_source_[i]);
    if (first == i) continue;
    const std::int64_t hint = env.backed()[env.sources()[i].symbol].hint;
    checks_.push_back({Check::Kind::SameSource, first, i, 0, 0, 0});
    words_.push_back({true, {first, i}, "both were " + std::to_string(hint) + " when captured", {}, false});
  }
}

void GuardProgram::add_ranges(const ShapeEnv& env) {
  for (const BackedSymbol& symbol : env.backed()) {
    if (symbol.range == Range()) continue;
    const std::uint32_t source = source_of(symbol.name);
    checks_.push_back({Check::Kind::Within, source, 0, symbol.range.lower, symbol.range.upper, 0});
    const Condition condition = Condition::ge(Expr::symbol(symbol.name), symbol.range.lower);
    words_.push_back({condition, {source}, "sizes 0 and 1 have captures of their own", {}, false});
  }
}

// Adds a check without steps if the condition is a bound of a single symbol. Returns whether it has added a check.
bool GuardProgram::add_within(const Condition& condition, Words words) {
  const bool bounds = condition.kind() == Condition::Kind::Equal || condition.kind() == Condition::Kind::AtMostZero;
  if (!bounds) return false;
  const std::vector<TermView> terms = terms_of(condition.expr());
  const TermView& lead = terms.front();
  const bool linear = lead.factors.size() == 1 && lead.factors[0].exponent == 1 && lead.factors[0].base.is_symbol();
  const std::int64_t constant = terms.size() == 2 && terms[1].factors.empty() ? terms[1].coefficient : 0;
  const bool alone = terms.size() == 1 || (terms.size() == 2 && terms[1].factors.empty());
  const bool unit = lead.coefficient == 1 || lead.coefficient == -1;
  if (!linear || !alone || !unit || constant == INT64_MIN) return false;
  Check check{Check::Kind::Within, source_of(lead.factors[0].base.symbol_name()), 0, INT64_MIN, INT64_MAX, 0};
  const std::int64_t bound = lead.coefficient == 1 ? -constant : constant;
  if (lead.coefficient == 1) check.upper = bound;
  if (lead.coefficient == -1 || condition.kind() == Condition::Kind::Equal) check.lower = bound;
  checks_.push_back(check);
  words_.push_back(std::move(words));
  return true;
}

void GuardProgram::add_guards(const ShapeEnv& env) {
  Builder builder(*this);
  Lowering lower(builder);
  for (const Guard& guard : env.guards()) {
    Words words{guard.condition, {}, guard.reason, guard.where, guard.specialises};
    for (const std::string& symbol : guard.condition.symbols()) words.sources.push_back(source_of(symbol));
    if (add_within(guard.condition, words)) continue;
    Check check;
    check.first = lower(guard.condition);
    check.steps_end = static_cast<std::uint32_t>(steps_.size());
    checks_.push_back(check);
    words_.push_back(std::move(words));
  }
  builder.place_registers();
}

GuardProgram::Failure GuardProgram::describe(std::size_t failure, std::span<const std::int64_t> values) const {
  const Words& words = words_.at(failure);
  Failure result{in_terms_of_sources(words.condition.text()), "", words.reason, words.where.describe(),
                 words.specialises};
  const Check& check = checks_[failure];
  if (check.kind == Check::Kind::SameSource) {
    result.expected = source_names_[check.first] + " == " + source_names_[check.second];
  }
  for (const std::uint32_t source : words.sources) {
    if (!result.found.empty()) result.found += ", ";
    result.found += source_names_[source] + " is " + std::to_string(values[source]);
  }
  return result;
}

std::string GuardProgram::in_terms_of_sources(const std::string& text) const {
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::string result;
  for (auto at = text.begin(); at != text.end();) {
    const auto end = std::find_if_not(at, text.end(), in_word);
    if (end == at) {
      result += *at++;
      continue;
    }
    const std::string word(at, end);
    const auto symbol = std::ranges::find(symbol_of_source_, word);
    const bool known = symbol != symbol_of_source_.end();
    result += known ? source_names_[static_cast<std::size_t>(symbol - symbol_of_source_.begin())] : word;
    at = end;
  }
  return result;
}

}  // namespace rehearse::shapes
