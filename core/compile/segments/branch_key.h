// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/ivalue.h>

#include <rehearse/capture/segments.h>

namespace rehearse::compiler {

// Identifies branches, also in messages. For a number that was read: its value, exact for floats.
std::string key_of(const c10::IValue& number);
// For a region's result: its numbers, and dtype, device, sizes, strides and requires_grad of its tensors.
std::string key_of(capture::RegionResult& result);

}  // namespace rehearse::compiler
