// SPDX-License-Identifier: BSD-3-Clause
#include "group_arguments.h"

#include <algorithm>
#include <vector>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comm/agree/wording.h"

namespace rehearse::comm {

void check_group_ranks(std::span<const int> ranks, int world_size) {
  // Copied only for an unsorted list: every rank makes every group, so the usual sorted list must cost no copy.
  std::vector<int> copy;
  auto sorted = ranks;
  if (!std::ranges::is_sorted(ranks)) {
    copy.assign(ranks.begin(), ranks.end());
    std::ranges::sort(copy);
    sorted = copy;
  }
  TORCH_CHECK_VALUE(!sorted.empty(), "new_group: the list of ranks is empty");
  TORCH_CHECK_VALUE(sorted.front() >= 0 && sorted.back() < world_size, "new_group: the ranks are ", members_text(ranks),
                    "; a world of ", world_size, " has ranks 0 to ", world_size - 1);
  TORCH_CHECK_VALUE(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
                    "new_group: a rank is named twice in ", members_text(ranks));
}

void check_is_member(std::span<const int> ranks, int rank) {
  TORCH_CHECK_VALUE(std::ranges::find(ranks, rank) != ranks.end(), "new_local_group: rank ", rank,
                    " is not among the ranks ", members_text(ranks), "; only members call it");
}

void refuse_taken_name(std::string_view name) {
  C10_THROW_ERROR(ValueError, fmt::format("new_group: there is a group of the name \"{}\" already", name));
}

std::string name_of_new_group(std::size_t index) { return fmt::format("group{}", index); }

std::string name_of_local_group(std::span<const int> ranks) {
  return fmt::format("local:[{}]", fmt::join(ranks, ", "));
}

std::string name_with_ranks(std::string_view name, std::span<const int> ranks) {
  return fmt::format("{} of [{}]", name, fmt::join(ranks, ", "));
}

std::string numbered_name(std::string_view name, std::size_t earlier) {
  return earlier == 0 ? std::string(name) : fmt::format("{}#{}", name, earlier + 1);
}

}  // namespace rehearse::comm
