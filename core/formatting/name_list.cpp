// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/formatting/name_list.h>

#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse {

std::string some_names(std::span<const std::string> names) {
  constexpr std::size_t kNamesShown = 8;
  if (names.size() <= kNamesShown) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.first(kNamesShown), ", "), names.size() - kNamesShown);
}

}  // namespace rehearse
