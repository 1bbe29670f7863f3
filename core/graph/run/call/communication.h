// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type_base.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <rehearse/graph/node.h>

namespace rehearse::graph {

// True for wait() or synchronize() of a Work.
bool is_method_of_work(const Node& node);

// True if the node communicates or waits for communication: a call of c10d, a functional collective, or a method of a
// Work.
bool communicates(const Node& node);

// True for a c10d call that writes into its tensors and returns a Work, and for a method of such a Work.
bool communicates_in_place(const Node& node);

// The process group in an operator's argument; null if the argument is not a process group.
c10::intrusive_ptr<c10d::ProcessGroup> group_of_object(const c10::IValue& object);

// The text that represents an object argument of c10d's operators in a graph: for a process group, the name under which
// c10d::resolve_process_group() finds it; for a reduce operation, "sum", "avg", ... Nothing for other objects, and for
// objects without such a text.
std::optional<std::string> text_of_object(const c10::IValue& object);
// The object of type `type` that `text` represents; nothing for other types or texts. Throws c10::Error for an unknown
// group.
std::optional<c10::IValue> object_of_text(const std::string& text, const c10::Type& type);

}  // namespace rehearse::graph
