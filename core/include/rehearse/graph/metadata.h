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
  SymInt(SymExpr expression);  // a number where the expression is one
  SymInt(shapes::Expr expression) : SymInt(SymExpr(std::move(expression))) {}

  bool is_symbolic() const noexcept { return std::holds_alternative<SymExpr>(value_); }
  std::int64_t number() const { return std::get<std::int64_t>(value_); }   // throws when symbolic
  const SymExpr& expression() const { return std::get<SymExpr>(value_); }  // throws when a number
  bool operator==(const SymInt&) const = default;

 private:
  std::variant<std::int64_t, SymExpr> value_;
};

// "5000" or the expression.
std::string to_string(const SymInt& value);

// What is known about a tensor without its data.
struct TensorMeta {
  std::vector<SymInt> sizes = {};
  std::vector<SymInt> strides = {};  // in elements; as many as sizes
  SymInt storage_offset = 0;         // in elements
  c10::ScalarType dtype = c10::ScalarType::Float;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  c10::Layout layout = c10::Layout::Strided;
  bool requires_grad = false;
  bool is_parameter = false;                  // a parameter of the module, not an activation
  std::optional<SymInt> storage_nbytes = {};  // bytes of the storage it views, where that is known
  bool is_conj = false;  // LibTorch's lazy bits, of conj() and of a complex tensor's imaginary part
  bool is_neg = false;
  bool operator==(const TensorMeta&) const = default;
};

// What is known about a symbolic scalar: fx's SymInt, SymFloat and SymBool. The expression may be a number.
struct SymScalarMeta {
  enum class Kind { Int, Float, Bool };
  Kind kind = Kind::Int;
  SymExpr expression;
  bool operator==(const SymScalarMeta&) const = default;
};

// What is known about a node's value (fx's meta["val"], Dynamo's meta["example_value"]). Lists stand in one another at
// most kMaxNesting deep.
class ValueMeta {
 public:
  using List = std::vector<ValueMeta>;
  using Value = std::variant<std::monostate, TensorMeta, SymScalarMeta, List>;

  ValueMeta() = default;  // none: an optional output that is not there
  ValueMeta(TensorMeta tensor) : value_(std::move(tensor)) {}
  ValueMeta(SymScalarMeta scalar) : value_(std::move(scalar)) {}
  ValueMeta(List items);  // throws GraphError when that is too deep

  const Value& value() const noexcept { return value_; }
  // Null when it is something else.
  const TensorMeta* tensor() const noexcept { return std::get_if<TensorMeta>(&value_); }
  const SymScalarMeta* scalar() const noexcept { return std::get_if<SymScalarMeta>(&value_); }
  const List* list() const noexcept { return std::get_if<List>(&value_); }
  friend bool operator==(const ValueMeta& left, const ValueMeta& right) { return left.value_ == right.value_; }

 private:
  Value value_;
  int depth_ = 0;  // of lists in one another
};

// The symbols in sizes, strides and storage offset, or in the scalar, or in all items; sorted as text, each
// once.
std::vector<std::string> free_symbols(const ValueMeta& value);

// Where in the user's program a node comes from.
struct Origin {
  std::string stack_trace;      // Python's or ours, innermost frame last: `File "x.py", line 5, in forward\n    code`
  std::string nn_module_stack;  // the modules around it, outermost first, `key,path,type` each, joined by ';'
  std::string torch_fn;         // the function that was called there
  // Of what was captured here: in place of a stack trace, which is made of it when it is asked for (milliseconds).
  exec::CallSite site = {};
  // Of a node that communicates, in whose name it does so when the graph runs. The return addresses of `site` that lie
  // within the captured code, innermost first, and the label that this code had set (RankContext::label()).
  std::vector<void*> asked_from = {};
  std::optional<std::string> label = {};

  std::string trace() const;        // the stack trace, or that of `site`
  std::string source_line() const;  // `x.py:5` of the innermost frame; empty when unknown
  std::string module_path() const;  // `encoder.layer.0` of the innermost module; empty when unknown
  friend bool operator==(const Origin& left, const Origin& right);  // by trace() and label
};

// Origin::source_line(); empty where the origin is unknown (null), too.
std::string source_line(const std::shared_ptr<const Origin>& origin);

// What is known about a node. Copies share value and origin, which never change once set.
struct Metadata {
  std::shared_ptr<const ValueMeta> value;      // null: unknown
  std::shared_ptr<const Origin> origin;        // null: unknown
  std::vector<std::string> unbacked_bindings;  // the unbacked symbols that this node brings into being
  bool ddp_ignored = false;                    // a parameter that DDP was told to ignore
  // A tensor may begin to require grad after its node, when autograd's history comes to a view of it. The nodes that
  // bring it there are numbered through the graph, from 1 on.
  std::size_t brings_history = 0;  // the number of this node; 0: it is none of them
  std::size_t history_from = 0;    // the number of the node from which on this value requires grad; 0: as `value` says

  void set_value(ValueMeta meta) { value = std::make_shared<const ValueMeta>(std::move(meta)); }
  void set_origin(Origin from) { origin = std::make_shared<const Origin>(std::move(from)); }
  const TensorMeta* tensor() const noexcept { return value ? value->tensor() : nullptr; }  // null: no tensor
  std::string source_line() const { return graph::source_line(origin); }
  friend bool operator==(const Metadata& left, const Metadata& right);  // by value, through the pointers
};

// What is known about the value of a node once the first `brought` of the nodes that bring history have run.
Metadata once_brought(Metadata meta, std::size_t brought);

}  // namespace rehearse::graph
