// SPDX-License-Identifier: BSD-3-Clause
// Checks a GuardProgram in each call.
#include <algorithm>
#include <array>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/shapes/attempt.h>
#include <rehearse_internal/shapes/guard_program.h>
#include <rehearse_internal/shapes/lower.h>

#include "shapes/expr/checked.h"

namespace rehearse::shapes {
namespace {

std::int64_t compute(Operation operation, std::int64_t left, std::int64_t right) {
  switch (operation) {
    case Operation::Add:
      return checked::add(left, right);
    case Operation::Subtract:
      return checked::subtract(left, right);
    case Operation::Multiply:
      return checked::multiply(left, right);
    case Operation::FloorDivide:
      return checked::floordiv(left, right);
    case Operation::Remainder:
      return checked::mod(left, right);
    case Operation::Minimum:
      return std::min(left, right);
    case Operation::Maximum:
      return std::max(left, right);
    case Operation::Equal:
      return left == right ? 1 : 0;
    case Operation::NotEqual:
      return left != right ? 1 : 0;
    case Operation::AtMost:
      return left <= right ? 1 : 0;
    case Operation::And:
      return left & right;
    case Operation::Or:
      return left | right;
  }
  return 0;
}

}  // namespace

std::optional<std::size_t> GuardProgram::first_failure(std::span<const std::int64_t> values) const {
  if (values.size() != sources()) {
    throw ShapeError("guards are checked with " + std::to_string(values.size()) + " values, but speak of " +
                     std::to_string(sources()));
  }
  std::array<std::int64_t, 64> usual;
  if (registers_ <= usual.size()) return run(values, usual);
  std::vector<std::int64_t> many(registers_);
  return run(values, many);
}

std::optional<std::size_t> GuardProgram::run(std::span<const std::int64_t> values,
                                             std::span<std::int64_t> registers) const {
  if (!steps_.empty()) {
    std::copy(values.begin(), values.end(), registers.begin());
    std::copy(constants_.begin(), constants_.end(), registers.begin() + static_cast<std::ptrdiff_t>(values.size()));
  }
  std::size_t next = 0;
  std::size_t at = 0;
  try {
    const Attempt attempt;
    for (; at < checks_.size(); ++at) {
      const Check& check = checks_[at];
      bool holds = false;
      if (check.kind == Check::Kind::Within) {
        holds = check.lower <= values[check.first] && values[check.first] <= check.upper;
      } else if (check.kind == Check::Kind::SameSource) {
        holds = values[check.first] == values[check.second];
      } else {
        for (; next < check.steps_end; ++next) {
          const Step& step = steps_[next];
          registers[step.result] =
              compute(static_cast<Operation>(step.operation), registers[step.left], registers[step.right]);
        }
        holds = registers[check.first] != 0;
      }
      if (!holds) return at;
    }
  } catch (const ShapeError&) {  // a guard cannot be computed for these values, so it fails
    return at;
  }
  return std::nullopt;
}

}  // namespace rehearse::shapes
