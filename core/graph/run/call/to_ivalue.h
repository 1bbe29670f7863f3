// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type_base.h>

#include <rehearse/graph/argument.h>

namespace rehearse::graph {

using ValueOf = std::function<const c10::IValue&(const Node&)>;

// Converts the argument to a schema's type: numbers to the number type or tensor that the schema wants, lists to their
// element type. `length`: a single item may replace a list of this fixed length. Throws GraphError(`node`, `field`) if
// the argument does not fit.
c10::IValue to_ivalue(const Argument& argument, const c10::Type& type, std::optional<std::int32_t> length,
                      const ValueOf& value_of, const Node& node, const std::string& field);

// The argument without conversion: a list becomes a tuple, a dict becomes a dict with strings as keys.
c10::IValue to_ivalue(const Argument& argument, const ValueOf& value_of, const Node& node, const std::string& field);

}  // namespace rehearse::graph
