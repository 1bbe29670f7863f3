// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type_base.h>

#include <rehearse/graph/argument.h>

namespace rehearse::graph {

using ValueOf = std::function<const c10::IValue&(const Node&)>;

// The argument as a value of a schema's type: numbers become what the schema asks for (an int where a float stands, a
// number where a tensor stands), lists get their element type. `length`: a fixed-size list may be given as one item.
// Throws GraphError(`node`, `field`) when it cannot be one.
c10::IValue to_ivalue(const Argument& argument, const c10::Type& type, std::optional<std::int32_t> length,
                      const ValueOf& value_of, const Node& node, const std::string& field);

// The argument as it is: a list becomes a tuple, a dict a dict of strings.
c10::IValue to_ivalue(const Argument& argument, const ValueOf& value_of, const Node& node, const std::string& field);

}  // namespace rehearse::graph
