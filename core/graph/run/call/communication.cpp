// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <string_view>
#include <utility>

#include <torch/custom_class.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "graph/run/call/communication.h"

namespace rehearse::graph {
namespace {

using c10d::ReduceOp;

// The names that the functional collectives use. PREMUL_SUM is missing, because it has a factor that no text holds.
constexpr std::array<std::pair<std::string_view, ReduceOp::RedOpType>, 8> kReduceOps = {{{"sum", ReduceOp::SUM},
                                                                                         {"avg", ReduceOp::AVG},
                                                                                         {"product", ReduceOp::PRODUCT},
                                                                                         {"min", ReduceOp::MIN},
                                                                                         {"max", ReduceOp::MAX},
                                                                                         {"band", ReduceOp::BAND},
                                                                                         {"bor", ReduceOp::BOR},
                                                                                         {"bxor", ReduceOp::BXOR}}};

template <class T>
bool is_a(const c10::Type& type) {
  return type == *c10::getCustomClassType<c10::intrusive_ptr<T>>();
}

std::optional<std::string> name_of_group(const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
  try {
    const std::string& name = group->getGroupName();
    if (c10d::resolve_process_group(name) == group) return name;
  } catch (const c10::Error&) {  // the group has no name, or a name that was never registered
  }
  return std::nullopt;
}

}  // namespace

bool is_method_of_work(const Node& node) {
  return node.op() == Op::CallMethod && (node.target() == "wait" || node.target() == "synchronize");
}

bool communicates(const Node& node) {
  const bool is_functional = node.op() == Op::CallFunction && node.target().starts_with("torch.ops._c10d_functional");
  return is_functional || communicates_in_place(node);
}

bool communicates_in_place(const Node& node) {
  return is_method_of_work(node) || (node.op() == Op::CallFunction && node.target().starts_with("torch.ops.c10d."));
}

c10::intrusive_ptr<c10d::ProcessGroup> group_of_object(const c10::IValue& object) {
  if (!object.isCustomClass() || !is_a<c10d::ProcessGroup>(*object.type())) return {};
  return object.toCustomClass<c10d::ProcessGroup>();
}

std::optional<std::string> text_of_object(const c10::IValue& object) {
  const c10::TypePtr type = object.type();
  if (is_a<c10d::ProcessGroup>(*type)) return name_of_group(object.toCustomClass<c10d::ProcessGroup>());
  if (!is_a<ReduceOp>(*type)) return std::nullopt;
  const auto op = object.toCustomClass<ReduceOp>();
  for (const auto& [name, known] : kReduceOps) {
    if (op->op_ == known) return std::string(name);
  }
  return std::nullopt;
}

std::optional<c10::IValue> object_of_text(const std::string& text, const c10::Type& type) {
  if (is_a<c10d::ProcessGroup>(type)) return c10::IValue(c10d::resolve_process_group(text));
  if (!is_a<ReduceOp>(type)) return std::nullopt;
  for (const auto& [name, op] : kReduceOps) {
    if (name == text) return c10::IValue(c10::make_intrusive<ReduceOp>(op));
  }
  return std::nullopt;
}

}  // namespace rehearse::graph
