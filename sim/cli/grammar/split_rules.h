// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <rehearse/parallel/bucket_splitter.h>

namespace rehearse::cli {

// What --rules takes, the fallback first.
inline const std::vector<std::string>& rule_names() {
  static const std::vector<std::string> names = {"default", "pytorch", "ddp"};
  return names;
}

// `name` is one of rule_names().
inline parallel::CountingRules counting_rules(std::string_view name) {
  if (name == "pytorch") return parallel::CountingRules::pytorch();
  if (name == "ddp") return parallel::CountingRules::ddp();
  return {};
}

}  // namespace rehearse::cli
