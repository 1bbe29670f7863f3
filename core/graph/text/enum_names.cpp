// SPDX-License-Identifier: BSD-3-Clause
#include "graph/text/enum_names.h"

#include <charconv>
#include <limits>
#include <sstream>

namespace rehearse::graph {
namespace {

template <class T>
std::string streamed(T value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

template <class T>
std::optional<T> found(std::string_view name, int count) {
  for (int i = 0; i < count; ++i) {
    if (name_of(static_cast<T>(i)) == name) return static_cast<T>(i);
  }
  return std::nullopt;
}

}  // namespace

// c10 has no name for the dtype of an undefined tensor.
std::string name_of(c10::ScalarType dtype) {
  return dtype == c10::ScalarType::Undefined ? "Undefined" : c10::toString(dtype);
}
std::string name_of(c10::Layout layout) { return streamed(layout); }
std::string name_of(c10::MemoryFormat format) { return streamed(format); }
std::string name_of(c10::Device device) { return device.str(); }

std::optional<c10::ScalarType> dtype_of(std::string_view name) {
  return found<c10::ScalarType>(name, static_cast<int>(c10::ScalarType::NumOptions));
}

std::optional<c10::Layout> layout_of(std::string_view name) {
  return found<c10::Layout>(name, static_cast<int>(c10::Layout::NumOptions));
}

std::optional<c10::MemoryFormat> memory_format_of(std::string_view name) {
  return found<c10::MemoryFormat>(name, static_cast<int>(c10::MemoryFormat::NumOptions));
}

// c10's own parser does not know all device types, and wraps around an index beyond 127.
std::optional<c10::Device> device_of(std::string_view name) {
  const std::size_t colon = name.find(':');
  c10::DeviceIndex index = -1;
  if (colon != std::string_view::npos) {
    int number = 0;
    const char* end = name.data() + name.size();
    const auto [at, error] = std::from_chars(name.data() + colon + 1, end, number);
    const bool fits = number >= 0 && number <= std::numeric_limits<c10::DeviceIndex>::max();
    if (error != std::errc() || at != end || !fits) return std::nullopt;
    index = static_cast<c10::DeviceIndex>(number);
  }
  for (int i = 0; i < c10::COMPILE_TIME_MAX_DEVICE_TYPES; ++i) {
    const auto type = static_cast<c10::DeviceType>(i);
    if (c10::DeviceTypeName(type, true) != name.substr(0, colon)) continue;
    if (type == c10::DeviceType::CPU && index > 0) return std::nullopt;
    return c10::Device(type, index);
  }
  return std::nullopt;
}

}  // namespace rehearse::graph
