// SPDX-License-Identifier: BSD-3-Clause
#include "graph/run/python/python_functions.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include <rehearse/graph/errors.h>

#include "graph/run/python/python_numbers.h"

namespace rehearse::graph {
namespace {

using c10::IValue;
using python::Arguments;
using python::fail;
using python::whole;

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

const std::unordered_map<std::string_view, PythonFunction>& known_functions() {
  using namespace python;
  static const std::unordered_map<std::string_view, PythonFunction> known = {
      {"_operator.add", {add, 2}},
      {"_operator.sub", {sub, 2}},
      {"_operator.mul", {mul, 2}},
      {"_operator.floordiv", {floordiv, 2}},
      {"_operator.truediv", {truediv, 2}},
      {"_operator.mod", {mod, 2}},
      {"_operator.pow", {python::pow, 2}},
      {"_operator.lt", {lt, 2}},
      {"_operator.le", {le, 2}},
      {"_operator.gt", {gt, 2}},
      {"_operator.ge", {ge, 2}},
      {"_operator.eq", {eq, 2}},
      {"_operator.ne", {ne, 2}},
      {"_operator.neg", {neg, 1}},
      {"_operator.pos", {pos, 1}},
      {"_operator.and_", {bit_and, 2}},
      {"_operator.or_", {bit_or, 2}},
      {"_operator.lshift", {lshift, 2}},
      {"_operator.rshift", {rshift, 2}},
      {"_operator.getitem", {getitem, 2}},
      {"math.trunc", {python::trunc, 1}},
      {"math.floor", {python::floor, 1}},
      {"math.ceil", {python::ceil, 1}},
      {"torch.sym_int", {python::trunc, 1, {"a"}}},
      {"torch.sym_float", {sym_float, 1, {"a"}}},
      {"torch.sym_not", {sym_not, 1, {"a"}}},
      {"torch.sym_ite", {sym_ite, 3, {"b", "t", "f"}}},
      {"torch.sym_max", {sym_max, 2, {"a", "b"}}},
      {"torch.sym_min", {sym_min, 2, {"a", "b"}}},
      {"torch.sym_sqrt", {sym_sqrt, 1, {"a"}}},
  };
  return known;
}

}  // namespace

const PythonFunction* find_python_function(std::string_view target) noexcept {
  const auto found = known_functions().find(target);
  return found == known_functions().end() ? nullptr : &found->second;
}

std::vector<const Argument*> bind_parameters(const Node& node, const PythonFunction& function) {
  std::vector<const Argument*> bound(function.count, nullptr);
  if (node.args().size() + node.kwargs().size() != function.count) {
    throw GraphError(node.name(), "args",
                     "'" + node.target() + "' takes " + std::to_string(function.count) + " arguments");
  }
  for (std::size_t i = 0; i < node.args().size(); ++i) bound[i] = &node.args()[i];
  for (const auto& [name, argument] : node.kwargs()) {
    const auto end =
        function.names.begin() + (function.names[0].empty() ? 0 : static_cast<std::ptrdiff_t>(function.count));
    const auto at = std::find(function.names.begin(), end, name);
    if (at == end)
      throw GraphError(node.name(), "kwargs." + name, "'" + node.target() + "' takes no argument of this name");
    const Argument*& slot = bound[static_cast<std::size_t>(at - function.names.begin())];
    if (slot != nullptr) throw GraphError(node.name(), "kwargs." + name, "is given by position too");
    slot = &argument;
  }
  return bound;
}

}  // namespace rehearse::graph
