// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace rehearse::operators {

// "add_" for "aten::add_"; a name without a namespace as it is. Valid as long as `name` is.
inline std::string_view name_in_namespace(std::string_view name) {
  const auto colons = name.find("::");
  return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

}  // namespace rehearse::operators
