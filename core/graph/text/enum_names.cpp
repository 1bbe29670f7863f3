// SPDX-License-Identifier: BSD-3-Clause
#include "graph/text/enum_names.h"

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

std::string name_of(c10::ScalarType dtype) { return c10::toString(dtype); }
std::string name_of(c10::Layout layout) { return streamed(layout); }
std::string name_of(c10::MemoryFormat format) { return streamed(format); }

std::optional<c10::ScalarType> dtype_of(std::string_view name) {
  return found<c10::ScalarType>(name, static_cast<int>(c10::ScalarType::Undefined));
}

std::optional<c10::Layout> layout_of(std::string_view name) {
  return found<c10::Layout>(name, static_cast<int>(c10::Layout::NumOptions));
}

std::optional<c10::MemoryFormat> memory_format_of(std::string_view name) {
  return found<c10::MemoryFormat>(name, static_cast<int>(c10::MemoryFormat::NumOptions));
}

}  // namespace rehearse::graph
