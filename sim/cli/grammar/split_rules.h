// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace rehearse::cli {

// The values of --rules, the default first.
inline const std::vector<std::string>& rule_names() {
  static const std::vector<std::string> names = {"default", "pytorch", "ddp"};
  return names;
}

}  // namespace rehearse::cli
