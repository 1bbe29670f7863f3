// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

// Python's arithmetic and comparisons on bools, ints and floats. Results are Python's, errors are
// std::invalid_argument. Ints have 64 bits. Each function takes as many values as it has operands.
namespace rehearse::graph::python {

using c10::IValue;
using Arguments = std::vector<IValue>;

[[noreturn]] void fail(const std::string& reason);
std::int64_t whole(const IValue& value);  // for an int or a bool

IValue add(const Arguments& a);
IValue sub(const Arguments& a);
IValue mul(const Arguments& a);
IValue floordiv(const Arguments& a);
IValue truediv(const Arguments& a);
IValue mod(const Arguments& a);
IValue pow(const Arguments& a);
IValue neg(const Arguments& a);
IValue pos(const Arguments& a);
IValue lt(const Arguments& a);
IValue le(const Arguments& a);
IValue gt(const Arguments& a);
IValue ge(const Arguments& a);
IValue eq(const Arguments& a);
IValue ne(const Arguments& a);
IValue bit_and(const Arguments& a);
IValue bit_or(const Arguments& a);
IValue lshift(const Arguments& a);
IValue rshift(const Arguments& a);
IValue trunc(const Arguments& a);
IValue floor(const Arguments& a);
IValue ceil(const Arguments& a);
IValue sym_float(const Arguments& a);
IValue sym_not(const Arguments& a);
IValue sym_ite(const Arguments& a);
IValue sym_sqrt(const Arguments& a);
IValue sym_max(const Arguments& a);
IValue sym_min(const Arguments& a);

}  // namespace rehearse::graph::python
