// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/ivalue.h>

#include <rehearse/capture/segments.h>

namespace rehearse::compiler {

// The keys identify branches, also in messages. The key of a number that was read is its value, exact for floats.
std::string key_of(const c10::IValue& number);
// The key of a region's result consists of its numbers, and of dtype, device, sizes, strides and requires_grad of its
// tensors.
std::string key_of(capture::RegionResult& result);

}  // namespace rehearse::compiler
