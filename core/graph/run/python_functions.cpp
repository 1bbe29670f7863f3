// SPDX-License-Identifier: BSD-3-Clause
#include "graph/run/python_functions.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <unordered_map>

namespace rehearse::graph {
namespace {

using c10::IValue;
using Arguments = std::vector<IValue>;

[[noreturn]] void fail(const std::string& reason) { throw std::invalid_argument(reason); }

bool is_whole(const IValue& value) { return value.isInt() || value.isBool(); }

std::int64_t whole(const IValue& value) {
  if (value.isBool()) return value.toBool() ? 1 : 0;
  if (value.isInt()) return value.toInt();
  fail("takes ints, and was given " + value.tagKind());
}

double real(const IValue& value) {
  if (value.isDouble()) return value.toDouble();
  if (is_whole(value)) return static_cast<double>(whole(value));
  fail("takes numbers, and was given " + value.tagKind());
}

bool truth(const IValue& value) { return value.isDouble() ? value.toDouble() != 0.0 : whole(value) != 0; }

[[noreturn]] void overflow() { fail("the result does not fit into 64 bits"); }

std::int64_t to_whole(double value) {
  if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0)) overflow();
  return static_cast<std::int64_t>(value);
}

// Whole numbers by `whole_case`, which says whether it overflowed; others by `real_case`.
template <class Whole, class Real>
IValue arithmetic(const Arguments& a, Whole whole_case, Real real_case) {
  if (!is_whole(a[0]) || !is_whole(a[1])) return real_case(real(a[0]), real(a[1]));
  std::int64_t result = 0;
  if (whole_case(whole(a[0]), whole(a[1]), result)) overflow();
  return result;
}

IValue add(const Arguments& a) {
  return arithmetic(
      a, [](std::int64_t x, std::int64_t y, std::int64_t& z) { return __builtin_add_overflow(x, y, &z); },
      [](double x, double y) { return x + y; });
}

IValue sub(const Arguments& a) {
  return arithmetic(
      a, [](std::int64_t x, std::int64_t y, std::int64_t& z) { return __builtin_sub_overflow(x, y, &z); },
      [](double x, double y) { return x - y; });
}

IValue mul(const Arguments& a) {
  return arithmetic(
      a, [](std::int64_t x, std::int64_t y, std::int64_t& z) { return __builtin_mul_overflow(x, y, &z); },
      [](double x, double y) { return x * y; });
}

void check_divisor(const IValue& divisor) {
  if (real(divisor) == 0.0) fail("division by zero");
}

// Rounds towards minus infinity, as Python does.
IValue floordiv(const Arguments& a) {
  check_divisor(a[1]);
  return arithmetic(
      a,
      [](std::int64_t x, std::int64_t y, std::int64_t& z) {
        if (x == std::numeric_limits<std::int64_t>::min() && y == -1) return true;
        z = x / y - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0);
        return false;
      },
      [](double x, double y) { return std::floor(x / y); });
}

// Has the sign of the divisor, as Python's.
IValue mod(const Arguments& a) {
  check_divisor(a[1]);
  return arithmetic(
      a,
      [](std::int64_t x, std::int64_t y, std::int64_t& z) {
        z = y == -1 ? 0 : x % y;
        if (z != 0 && (z < 0) != (y < 0)) z += y;
        return false;
      },
      [](double x, double y) {
        const double rest = std::fmod(x, y);
        return rest != 0.0 && (rest < 0) != (y < 0) ? rest + y : rest;
      });
}

IValue truediv(const Arguments& a) {
  check_divisor(a[1]);
  return real(a[0]) / real(a[1]);
}

IValue pow(const Arguments& a) {
  if (!is_whole(a[0]) || !is_whole(a[1]) || whole(a[1]) < 0) return std::pow(real(a[0]), real(a[1]));
  std::int64_t result = 1;
  std::int64_t base = whole(a[0]);
  for (std::int64_t exponent = whole(a[1]); exponent > 0; exponent /= 2) {
    if (exponent % 2 != 0 && __builtin_mul_overflow(result, base, &result)) overflow();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) overflow();
  }
  return result;
}

template <class Compare>
bool compare(const Arguments& a, Compare compare_values) {
  if (is_whole(a[0]) && is_whole(a[1])) return compare_values(whole(a[0]), whole(a[1]));
  return compare_values(real(a[0]), real(a[1]));
}

IValue lt(const Arguments& a) { return compare(a, [](auto x, auto y) { return x < y; }); }
IValue le(const Arguments& a) { return compare(a, [](auto x, auto y) { return x <= y; }); }
IValue gt(const Arguments& a) { return compare(a, [](auto x, auto y) { return x > y; }); }
IValue ge(const Arguments& a) { return compare(a, [](auto x, auto y) { return x >= y; }); }
IValue eq(const Arguments& a) { return compare(a, [](auto x, auto y) { return x == y; }); }
IValue ne(const Arguments& a) { return compare(a, [](auto x, auto y) { return x != y; }); }

IValue neg(const Arguments& a) { return sub({is_whole(a[0]) ? IValue(std::int64_t{0}) : IValue(-0.0), a[0]}); }
IValue pos(const Arguments& a) { return is_whole(a[0]) ? IValue(whole(a[0])) : IValue(real(a[0])); }

IValue bit_and(const Arguments& a) {
  if (a[0].isBool() && a[1].isBool()) return a[0].toBool() && a[1].toBool();
  return whole(a[0]) & whole(a[1]);
}
IValue bit_or(const Arguments& a) {
  if (a[0].isBool() && a[1].isBool()) return a[0].toBool() || a[1].toBool();
  return whole(a[0]) | whole(a[1]);
}

std::int64_t shift_of(const IValue& value) {
  if (whole(value) < 0) fail("negative shift count");
  return whole(value);
}
IValue lshift(const Arguments& a) {
  const std::int64_t shift = shift_of(a[1]);
  if (whole(a[0]) == 0) return std::int64_t{0};
  if (shift > 62) overflow();
  return mul({whole(a[0]), std::int64_t{1} << shift});
}
IValue rshift(const Arguments& a) { return whole(a[0]) >> std::min<std::int64_t>(shift_of(a[1]), 63); }

IValue trunc(const Arguments& a) { return is_whole(a[0]) ? whole(a[0]) : to_whole(std::trunc(real(a[0]))); }
IValue floor(const Arguments& a) { return is_whole(a[0]) ? whole(a[0]) : to_whole(std::floor(real(a[0]))); }
IValue ceil(const Arguments& a) { return is_whole(a[0]) ? whole(a[0]) : to_whole(std::ceil(real(a[0]))); }
IValue sym_float(const Arguments& a) { return real(a[0]); }
IValue sym_not(const Arguments& a) { return !truth(a[0]); }
IValue sym_ite(const Arguments& a) { return truth(a[0]) ? a[1] : a[2]; }
IValue sym_sqrt(const Arguments& a) { return std::sqrt(real(a[0])); }
// A float among the two makes the result a float, as for symbolic numbers.
IValue pick(const Arguments& a, bool first) {
  const IValue& chosen = first ? a[0] : a[1];
  return is_whole(a[0]) && is_whole(a[1]) ? IValue(whole(chosen)) : IValue(real(chosen));
}
IValue sym_max(const Arguments& a) { return pick(a, ge(a).toBool()); }
IValue sym_min(const Arguments& a) { return pick(a, le(a).toBool()); }

std::size_t position(const IValue& index, std::size_t size) {
  const std::int64_t at = whole(index);
  const auto count = static_cast<std::int64_t>(size);
  if (at >= count || at < -count) {
    fail("index " + std::to_string(at) + " is out of range: there are " + std::to_string(size) + " items");
  }
  return static_cast<std::size_t>(at < 0 ? at + count : at);
}

IValue getitem(const Arguments& a) {
  if (a[0].isTuple()) return a[0].toTupleRef().elements()[position(a[1], a[0].toTupleRef().elements().size())];
  if (a[0].isList()) return a[0].toListRef()[position(a[1], a[0].toListRef().size())];
  if (a[0].isGenericDict() && a[1].isString()) {
    const auto dict = a[0].toGenericDict();
    const auto found = dict.find(a[1]);
    if (found == dict.end()) fail("there is no key '" + a[1].toStringRef() + "'");
    return found->value();
  }
  fail("takes a list, tuple or dict and its index, and was given " + a[0].tagKind() + " and " + a[1].tagKind());
}

struct Known {
  PythonFunction function;
  std::size_t arguments;
};

const std::unordered_map<std::string_view, Known>& known_functions() {
  static const std::unordered_map<std::string_view, Known> known = {
      {"_operator.add", {add, 2}},           {"_operator.sub", {sub, 2}},         {"_operator.mul", {mul, 2}},
      {"_operator.floordiv", {floordiv, 2}}, {"_operator.truediv", {truediv, 2}}, {"_operator.mod", {mod, 2}},
      {"_operator.pow", {pow, 2}},           {"_operator.lt", {lt, 2}},           {"_operator.le", {le, 2}},
      {"_operator.gt", {gt, 2}},             {"_operator.ge", {ge, 2}},           {"_operator.eq", {eq, 2}},
      {"_operator.ne", {ne, 2}},             {"_operator.neg", {neg, 1}},         {"_operator.pos", {pos, 1}},
      {"_operator.and_", {bit_and, 2}},      {"_operator.or_", {bit_or, 2}},      {"_operator.lshift", {lshift, 2}},
      {"_operator.rshift", {rshift, 2}},     {"_operator.getitem", {getitem, 2}}, {"math.trunc", {trunc, 1}},
      {"math.floor", {floor, 1}},            {"math.ceil", {ceil, 1}},            {"torch.sym_int", {trunc, 1}},
      {"torch.sym_float", {sym_float, 1}},   {"torch.sym_not", {sym_not, 1}},     {"torch.sym_ite", {sym_ite, 3}},
      {"torch.sym_max", {sym_max, 2}},       {"torch.sym_min", {sym_min, 2}},     {"torch.sym_sqrt", {sym_sqrt, 1}},
  };
  return known;
}

}  // namespace

PythonFunction find_python_function(std::string_view target) noexcept {
  const auto found = known_functions().find(target);
  return found == known_functions().end() ? nullptr : found->second.function;
}

std::size_t argument_count(std::string_view target) noexcept {
  const auto found = known_functions().find(target);
  return found == known_functions().end() ? 0 : found->second.arguments;
}

}  // namespace rehearse::graph
