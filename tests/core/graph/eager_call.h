// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/ATen.h>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

using c10::IValue;
using Values = std::unordered_map<const Node*, IValue>;

// A node's arguments, as the types that ATen's functions take.
class Call {
 public:
  Call(const GraphModule& module, const Node& node, const Values& values)
      : module(module), node_(node), values_(values) {}

  IValue value(const Argument& argument) const {
    if (const Node* node = argument.node()) return values_.at(node);
    if (argument.is<std::int64_t>()) return argument.as<std::int64_t>();
    if (argument.is<double>()) return argument.as<double>();
    if (argument.is<bool>()) return argument.as<bool>();
    return {};
  }
  IValue v(std::size_t i) const { return value(node_.args().at(i)); }
  at::Tensor t(std::size_t i) const {
    return i < node_.args().size() && !v(i).isNone() ? v(i).toTensor() : at::Tensor();
  }
  std::int64_t n(std::size_t i) const { return v(i).toInt(); }
  double d(std::size_t i) const { return v(i).toDouble(); }
  at::Scalar scalar(std::size_t i) const { return v(i).toScalar(); }
  bool is_tensor(std::size_t i) const { return v(i).isTensor(); }
  std::size_t count() const { return node_.args().size(); }
  const Argument& raw(std::size_t i) const { return node_.args().at(i); }

  // The integers of the list at i. If argument i is no list, the integers from i on.
  std::vector<std::int64_t> ints(std::size_t i) const {
    const List list = raw(i).is<List>()
                          ? raw(i).as<List>()
                          : List(node_.args().begin() + static_cast<std::ptrdiff_t>(i), node_.args().end());
    std::vector<std::int64_t> found;
    for (const Argument& item : list) found.push_back(value(item).toInt());
    return found;
  }
  std::vector<at::Tensor> tensors(std::size_t i) const {
    std::vector<at::Tensor> found;
    for (const Argument& item : raw(i).as<List>()) found.push_back(value(item).toTensor());
    return found;
  }
  std::vector<IValue> rest(std::size_t i) const {
    std::vector<IValue> found;
    for (; i < count(); ++i) found.push_back(v(i));
    return found;
  }
  std::string text(const char* name) const {
    const Argument* argument = node_.kwarg(name);
    return argument != nullptr ? argument->as<std::string>() : "none";
  }

  const GraphModule& module;

 private:
  const Node& node_;
  const Values& values_;
};

}  // namespace rehearse::graph
