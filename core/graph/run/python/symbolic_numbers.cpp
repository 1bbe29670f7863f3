// SPDX-License-Identifier: BSD-3-Clause
#include "graph/run/python/symbolic_numbers.h"

#include <algorithm>
#include <unordered_map>

#include <c10/core/SymBool.h>
#include <c10/core/SymInt.h>

#include "graph/run/python/python_numbers.h"

namespace rehearse::graph {
namespace {

using c10::IValue;
using Truth = c10::SymBool;
using Integer = c10::SymInt;
using Arguments = std::vector<IValue>;
using Answer = std::optional<IValue>;  // nothing: no symbol can express what Python gives
using SymbolicFunction = Answer (*)(const Arguments&);

bool is_symbolic(const IValue& value) { return value.isSymInt() || value.isSymBool(); }
bool is_integer(const IValue& value) {
  return value.isInt() || value.isSymInt() || value.isBool() || value.isSymBool();
}

Integer number(const IValue& value) {
  if (value.isSymBool()) return value.toSymBool().toSymInt();
  if (value.isBool()) return Integer(value.toBool() ? 1 : 0);
  return value.toSymInt();
}

Truth truth(const IValue& value) {
  return value.isSymBool() || value.isBool() ? value.toSymBool() : number(value).sym_ne(0);
}

// c10's / and % round to zero, and Python's // and % round down. Both numbers may be plain: what the graph knows of a
// symbolic truth value may decide it.
Integer rounded_down(const Integer& dividend, const Integer& divisor) {
  if (!dividend.is_symbolic() && !divisor.is_symbolic()) {
    return python::floordiv(
               {IValue(dividend.guard_int(__FILE__, __LINE__)), IValue(divisor.guard_int(__FILE__, __LINE__))})
        .toSymInt();
  }
  const c10::SymNode some = (dividend.is_symbolic() ? dividend : divisor).toSymNode();
  const auto node_of = [&](const Integer& each) {
    return each.is_symbolic() ? each.toSymNode() : some->wrap_int(each.guard_int(__FILE__, __LINE__));
  };
  return Integer(node_of(dividend)->int_floordiv(node_of(divisor)));
}

Answer quotient(const Arguments& a) { return rounded_down(number(a[0]), number(a[1])); }

Answer mod(const Arguments& a) {
  const Integer dividend = number(a[0]), divisor = number(a[1]);
  const bool are_natural =
      TORCH_STATICALLY_KNOWN_TRUE(dividend.sym_ge(0)) && TORCH_STATICALLY_KNOWN_TRUE(divisor.sym_gt(0));
  return are_natural ? dividend % divisor : dividend - rounded_down(dividend, divisor) * divisor;
}

bool is_boolean(const IValue& value) { return value.isBool() || value.isSymBool(); }
bool are_booleans(const Arguments& a) { return std::ranges::all_of(a, is_boolean); }

// In Python, a negative exponent gives a float.
Answer power(const Arguments& a) {
  const std::int64_t exponent = number(a[1]).guard_int(__FILE__, __LINE__);
  if (exponent < 0) return std::nullopt;
  Integer result = 1;
  for (std::int64_t i = 0; i < exponent; ++i) result = result * number(a[0]);
  return result;
}

// For integers, Python's & and | combine bits.
Answer logical_and(const Arguments& a) {
  return are_booleans(a) ? Answer(truth(a[0]).sym_and(truth(a[1]))) : std::nullopt;
}

Answer logical_or(const Arguments& a) {
  return are_booleans(a) ? Answer(truth(a[0]).sym_or(truth(a[1]))) : std::nullopt;
}

const std::unordered_map<std::string_view, SymbolicFunction>& symbolic_functions() {
  static const std::unordered_map<std::string_view, SymbolicFunction> functions = {
      {"_operator.add", [](const Arguments& a) -> Answer { return number(a[0]) + number(a[1]); }},
      {"_operator.sub", [](const Arguments& a) -> Answer { return number(a[0]) - number(a[1]); }},
      {"_operator.mul", [](const Arguments& a) -> Answer { return number(a[0]) * number(a[1]); }},
      {"_operator.floordiv", quotient},
      {"_operator.mod", mod},
      {"_operator.neg", [](const Arguments& a) -> Answer { return -number(a[0]); }},
      {"_operator.pos", [](const Arguments& a) -> Answer { return number(a[0]); }},
      {"_operator.pow", power},
      {"_operator.lt", [](const Arguments& a) -> Answer { return number(a[0]).sym_lt(number(a[1])); }},
      {"_operator.le", [](const Arguments& a) -> Answer { return number(a[0]).sym_le(number(a[1])); }},
      {"_operator.gt", [](const Arguments& a) -> Answer { return number(a[0]).sym_gt(number(a[1])); }},
      {"_operator.ge", [](const Arguments& a) -> Answer { return number(a[0]).sym_ge(number(a[1])); }},
      {"_operator.eq", [](const Arguments& a) -> Answer { return number(a[0]).sym_eq(number(a[1])); }},
      {"_operator.ne", [](const Arguments& a) -> Answer { return number(a[0]).sym_ne(number(a[1])); }},
      {"_operator.and_", logical_and},
      {"_operator.or_", logical_or},
      {"torch.sym_max", [](const Arguments& a) -> Answer { return number(a[0]).max(number(a[1])); }},
      {"torch.sym_min", [](const Arguments& a) -> Answer { return number(a[0]).min(number(a[1])); }},
      {"torch.sym_not", [](const Arguments& a) -> Answer { return truth(a[0]).sym_not(); }},
  };
  return functions;
}

}  // namespace

std::optional<IValue> call_symbolically(std::string_view target, const Arguments& arguments) {
  if (std::ranges::none_of(arguments, is_symbolic)) return std::nullopt;
  if (!std::ranges::all_of(arguments, is_integer)) return std::nullopt;
  const auto found = symbolic_functions().find(target);
  return found != symbolic_functions().end() ? found->second(arguments) : std::nullopt;
}

}  // namespace rehearse::graph
