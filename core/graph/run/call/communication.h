// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type_base.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <rehearse/graph/node.h>

namespace rehearse::graph {

// Is it wait() or synchronize() of a Work?
bool is_method_of_work(const Node& node);

// Does the node send or receive, or wait for that? c10d's calls and functional ones; wait() and synchronize() of a
// Work.
bool communicates(const Node& node);

// Is it a call of c10d's, which writes into its tensors and gives a Work, or a method of such a Work?
bool communicates_in_place(const Node& node);

// The process group that an operator of c10d is given; null: it is none.
c10::intrusive_ptr<c10d::ProcessGroup> group_of_object(const c10::IValue& object);

// What c10d's operators take beside tensors and numbers stands in a graph as text: a process group by the name under
// which c10d::resolve_process_group() finds it, a reduce operation as "sum", "avg", ... None: it is neither, or has no
// such text.
std::optional<std::string> text_of_object(const c10::IValue& object);
// The value of a class's type for its text; none: it is no such class or text. Throws c10::Error for an unknown group.
std::optional<c10::IValue> object_of_text(const std::string& text, const c10::Type& type);

}  // namespace rehearse::graph
