// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <rehearse/graph/argument.h>

namespace rehearse::graph {

// The names of c10's enums and devices in the text form, in both directions: Float, Strided, ChannelsLast, cuda:1.
// Every value of c10 can be read back from its name. For any other text, the functions that take a name return nothing.
std::string name_of(c10::ScalarType dtype);
std::string name_of(c10::Layout layout);
std::string name_of(c10::MemoryFormat format);
std::string name_of(c10::Device device);
std::optional<c10::ScalarType> dtype_of(std::string_view name);
std::optional<c10::Layout> layout_of(std::string_view name);
std::optional<c10::MemoryFormat> memory_format_of(std::string_view name);
std::optional<c10::Device> device_of(std::string_view name);

}  // namespace rehearse::graph
