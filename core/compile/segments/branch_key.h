// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/ivalue.h>

#include <rehearse/capture/segments.h>

namespace rehearse::compiler {

// What tells branches apart, for people too. Of a number that was read: its value, floating-point ones exactly.
std::string key_of(const c10::IValue& number);
// Of a region's result: its numbers, and of its tensors dtype, device, sizes, strides and whether they require grad.
std::string key_of(capture::RegionResult& result);

}  // namespace rehearse::compiler
