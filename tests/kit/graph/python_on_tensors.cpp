// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>

#include <ATen/TensorIndexing.h>

#include "graph/ir/targets.h"
#include "graph/run/steps/steps.h"
#include "kit/graph/dynamo_steps.h"
#include "kit/graph/overloads.h"

namespace rehearse::graph {
namespace {

constexpr std::string_view kOperator = "_operator.";

// The name of the ATen operator that replaces one of Python's operators (`_operator.*`) if an operand is a tensor.
// Empty for other functions, which take no tensors.
std::string_view tensor_form(std::string_view target) {
  if (!target.starts_with(kOperator)) return "";
  const std::string_view name = target.substr(kOperator.size());
  if (name == "floordiv") return "floor_divide";
  if (name == "truediv") return "div";
  if (name == "mod") return "remainder";
  if (name == "pos") return "positive";
  if (name == "and_") return "bitwise_and";
  if (name == "or_") return "bitwise_or";
  if (name == "lshift") return "bitwise_left_shift";
  if (name == "rshift") return "bitwise_right_shift";
  return name;
}

std::string field_of(std::size_t index) { return "args[" + std::to_string(index) + "]"; }

class OperatorOnTensors : public Step {
 public:
  OperatorOnTensors(const Node& node, std::unique_ptr<Step> on_numbers)
      : node_(node), on_numbers_(std::move(on_numbers)), on_tensors_(tensor_form(node.target())) {}

  c10::IValue run(const ValueOf& value_of) const override {
    const bool has_tensor = std::ranges::any_of(node_.args(), [&](const Argument& argument) {
      return argument.node() != nullptr && value_of(*argument.node()).isTensor();
    });
    if (!has_tensor && on_numbers_ != nullptr) return on_numbers_->run(value_of);
    return on_tensors_.call(node_, node_.args(), {}, node_.args().size(), value_of);
  }

 private:
  const Node& node_;
  std::unique_ptr<Step> on_numbers_;  // null: an operator on tensors only
  Overloads on_tensors_;
};

// Takes an item of a list, or indexes a tensor. In Python, x[0, 1] and x[[0, 1]] differ, but in a graph tuples are
// lists too. Therefore a list counts as a tuple of one index for each dimension if only a tuple is possible, and is
// refused otherwise.
class GetItemStep : public Step {
 public:
  GetItemStep(const Node& node, std::unique_ptr<Step> on_lists) : node_(node), on_lists_(std::move(on_lists)) {
    const auto is_number = [](const Argument& item) { return item.is<std::int64_t>() || item.is<bool>(); };
    const List* list = node.args()[1].get_if<List>();
    if (list != nullptr && std::all_of(list->begin(), list->end(), is_number)) refuse_list();
  }

  c10::IValue run(const ValueOf& value_of) const override {
    const Node* source = node_.args()[0].node();
    if (source == nullptr || !value_of(*source).isTensor()) return on_lists_->run(value_of);
    const at::Tensor& tensor = value_of(*source).toTensor();
    const List* list = node_.args()[1].get_if<List>();
    if (list == nullptr) return tensor.index({index_of(node_.args()[1], value_of)});
    std::vector<at::indexing::TensorIndex> indices;
    for (const Argument& item : *list) indices.push_back(index_of(item, value_of));
    if (std::none_of(indices.begin(), indices.end(), is_of_a_tuple)) refuse_list();
    return tensor.index(indices);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw GraphError(node_.name(), field_of(1), message); }

  [[noreturn]] void refuse_list() const {
    fail(
        "is a list of numbers, which as a tuple would index one dimension each and as a list one dimension with all; a "
        "graph "
        "does not tell them apart: use select() or pass a tensor");
  }

  // True for an index that cannot form a tensor together with other indices, so that the list must be a tuple.
  static bool is_of_a_tuple(const at::indexing::TensorIndex& index) {
    return index.is_none() || index.is_ellipsis() || index.is_slice() ||
           (index.is_tensor() && index.tensor().dim() > 0);
  }

  at::indexing::TensorIndex index_of(const Argument& index, const ValueOf& value_of) const {
    if (index.is<Ellipsis>()) return at::indexing::Ellipsis;
    if (const auto* slice = index.get_if<Slice>()) {
      return at::indexing::Slice(bound(slice->start(), value_of), bound(slice->stop(), value_of),
                                 bound(slice->step(), value_of));
    }
    if (index.is<List>()) fail("a list within an index cannot be run: pass a tensor");
    const c10::IValue value = to_ivalue(index, value_of, node_, field_of(1));
    if (value.isNone()) return at::indexing::None;
    if (value.isBool()) return value.toBool();
    if (value.isInt()) return value.toInt();
    if (value.isTensor()) return value.toTensor();
    fail("a tensor has no item " + value.tagKind());
  }

  std::optional<c10::SymInt> bound(const Argument& argument, const ValueOf& value_of) const {
    const c10::IValue value = to_ivalue(argument, value_of, node_, field_of(1));
    if (value.isNone()) return std::nullopt;
    if (!value.isInt()) fail("a slice is made of ints, and was given " + value.tagKind());
    return value.toInt();
  }

  const Node& node_;
  std::unique_ptr<Step> on_lists_;
};

}  // namespace

std::unique_ptr<Step> make_step_on_tensors(const Node& node) {
  if (node.target() == "_operator.matmul") return std::make_unique<OperatorOnTensors>(node, nullptr);
  std::unique_ptr<Step> on_numbers = make_python_step(node);
  if (on_numbers == nullptr || !node.target().starts_with(kOperator)) return on_numbers;
  if (node.target() == kGetItem) return std::make_unique<GetItemStep>(node, std::move(on_numbers));
  return std::make_unique<OperatorOnTensors>(node, std::move(on_numbers));
}

}  // namespace rehearse::graph
