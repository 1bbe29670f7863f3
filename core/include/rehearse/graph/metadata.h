// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <rehearse/exec/call_site.h>
#include <rehearse/graph/argument.h>

namespace rehearse::graph {

// A size, stride, offset or byte count: a number, or an expression over symbols.
class SymInt {
 public:
  SymInt(std::int64_t value = 0) : value_(value) {}
  SymInt(SymExpr expression);  // becomes a number if the expression is constant
  SymInt(shapes::Expr expression) : SymInt(SymExpr(std::move(expression))) {}

  bool is_symbolic() const noexcept { return std::holds_alternative<SymExpr>(value_); }
  std::int64_t number() const { return std::get<std::int64_t>(value_); }   // throws if symbolic
  const SymExpr& expression() const { return std::get<SymExpr>(value_); }  // throws if a number
  bool operator==(const SymInt&) const = default;

 private:
  std::variant<std::int64_t, SymExpr> value_;
};

// The number, "5000", or the expression.
std::string to_string(const SymInt& value);

// The metadata of a tensor: everything but its data.
struct TensorMeta {
  std::vector<SymInt> sizes = {};
  std::vector<SymInt> strides = {};  // in elements; one for each size
  SymInt storage_offset = 0;         // in elements
  c10::ScalarType dtype = c10::ScalarType::Float;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  c10::Layout layout = c10::Layout::Strided;
  bool requires_grad = false;
  bool is_parameter = false;                  // a parameter of the module, not an activation
  std::optional<SymInt> storage_nbytes = {};  // bytes of its storage; nullopt: unknown
  bool is_conj = false;                       // LibTorch's lazy conjugation, as in the result of conj(x)
  bool is_neg = false;                        // LibTorch's lazy negation, as in the result of imag(conj(x))
  bool operator==(const TensorMeta&) const = default;
};

// The metadata of a symbolic scalar: fx's SymInt, SymFloat and SymBool. The expression may be a number.
struct SymScalarMeta {
  enum class Kind { Int, Float, Bool };
  Kind kind = Kind::Int;
  SymExpr expression;
  bool operator==(const SymScalarMeta&) const = default;
};

// The metadata of a node's value (fx's meta["val"], Dynamo's meta["example_value"]). Lists may nest kMaxNesting deep.
class ValueMeta {
 public:
  using List = std::vector<ValueMeta>;
  using Value = std::variant<std::monostate, TensorMeta, SymScalarMeta, List>;

  ValueMeta() = default;  // None: an optional output that is absent
  ValueMeta(TensorMeta tensor) : value_(std::move(tensor)) {}
  ValueMeta(SymScalarMeta scalar) : value_(std::move(scalar)) {}
  ValueMeta(List items);  // throws GraphError if the lists nest too deeply

  const Value& value() const noexcept { return value_; }
  // Null if the value is of another kind.
  const TensorMeta* tensor() const noexcept { return std::get_if<TensorMeta>(&value_); }
  const SymScalarMeta* scalar() const noexcept { return std::get_if<SymScalarMeta>(&value_); }
  const List* list() const noexcept { return std::get_if<List>(&value_); }
  friend bool operator==(const ValueMeta& left, const ValueMeta& right) { return left.value_ == right.value_; }

 private:
  Value value_;
  int depth_ = 0;  // how deeply its lists nest
};

// The symbols in sizes, strides and storage offset, in the scalar, or in all items. Sorted as text, without duplicates.
std::vector<std::string> free_symbols(const ValueMeta& value);

// The place in the user's program that a node comes from.
struct Origin {
  std::string stack_trace;  // Python's or Rehearse's, innermost frame last: `File "x.py", line 5, in forward\n    code`
  std::string nn_module_stack;  // the enclosing modules, outermost first, `key,path,type` each, joined by ';'
  std::string torch_fn;         // the function that the program called there
  // For nodes captured in this process: replaces stack_trace, which is made from it on demand (milliseconds).
  exec::CallSite site = {};
  // For nodes that communicate: what reports say about the collective when the graph runs. `asked_from`: the return
  // addresses of `site` within the captured code, innermost first. `label`: the label that this code had set
  // (RankContext::label()).
  std::vector<void*> asked_from = {};
  std::optional<std::string> label = {};

  std::string trace() const;                                        // the stack trace, or one made from `site`
  std::string source_line() const;                                  // `x.py:5` of the innermost frame; empty if unknown
  friend bool operator==(const Origin& left, const Origin& right);  // by trace(), not `site`; ignores `asked_from`
};

// Origin::source_line(); also empty if `origin` is null.
std::string source_line(const std::shared_ptr<const Origin>& origin);

// The metadata of a node. Copies share value and origin, which never change once set.
struct Metadata {
  std::shared_ptr<const ValueMeta> value;      // null: unknown
  std::shared_ptr<const Origin> origin;        // null: unknown
  std::vector<std::string> unbacked_bindings;  // the unbacked symbols that this node introduces
  bool ddp_ignored = false;                    // a parameter that DistributedDataParallel ignores
  // A tensor may begin to require grad after its node has run, namely if a later node writes a value with autograd
  // history into memory that the tensor shares. The nodes that bring history in this way are numbered in the graph's
  // order, from 1.
  std::size_t brings_history = 0;  // the number of this node; 0: it brings none
  std::size_t history_from = 0;    // the number of the node that makes this value require grad; 0: as `value` says

  void set_value(ValueMeta meta) { value = std::make_shared<const ValueMeta>(std::move(meta)); }
  void set_origin(Origin from) { origin = std::make_shared<const Origin>(std::move(from)); }
  const TensorMeta* tensor() const noexcept { return value ? value->tensor() : nullptr; }  // null if it is not a tensor
  std::string source_line() const { return graph::source_line(origin); }
  friend bool operator==(const Metadata& left, const Metadata& right);  // by value, through the pointers
};

// The metadata of a node's value after the first `brought` of the nodes that bring history have run.
Metadata once_brought(Metadata meta, std::size_t brought);

}  // namespace rehearse::graph
