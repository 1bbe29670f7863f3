// SPDX-License-Identifier: BSD-3-Clause
#include "derived_group.h"

#include <algorithm>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/comm/described_backend.h>

namespace rehearse::comm {

std::string derived_name(const std::string& group, std::string_view how, const std::vector<int>& ranks) {
  return fmt::format("{}:{}:[{}]", group, how, fmt::join(ranks, ", "));
}

void check_members(const char* call, const std::vector<int>& ranks, int size) {
  TORCH_CHECK_VALUE(!ranks.empty(), "rehearse::", call, ": the list of ranks is empty");
  for (const int rank : ranks) {
    TORCH_CHECK_VALUE(rank >= 0 && rank < size, "rehearse::", call, ": rank ", rank, " is out of range; a group of ",
                      size, " has ranks 0 to ", size - 1);
    TORCH_CHECK_VALUE(std::ranges::count(ranks, rank) == 1, "rehearse::", call, ": rank ", rank, " is named twice");
  }
}

std::vector<int> ranks_that_stay(const std::vector<std::int64_t>& excluded, int self, int size) {
  const std::vector<int> leaving(excluded.begin(), excluded.end());
  check_members("shrink", leaving, size);
  const auto leaves = [&](int rank) { return std::ranges::find(leaving, rank) != leaving.end(); };
  TORCH_CHECK_VALUE(!leaves(self), "rehearse::shrink: rank ", self,
                    " is one of the ranks to exclude; only the ranks that stay may call shrink()");
  std::vector<int> staying;
  for (int rank = 0; rank < size; ++rank) {
    if (!leaves(rank)) staying.push_back(rank);
  }
  return staying;
}

bool is_abort(int flags) {
  constexpr int kAbort = DescribedBackend::kShrinkAbort;
  TORCH_CHECK_VALUE(flags == 0 || flags == kAbort, "rehearse::shrink: the flags are ", flags, "; they are 0 or ",
                    kAbort, " (abort)");
  return flags == kAbort;
}

void check_extension(std::chrono::milliseconds duration) {
  TORCH_CHECK_VALUE(duration.count() >= 0, "rehearse::extend_timeout_once: the duration is ", duration.count(),
                    " ms; it is 0 or more");
}

}  // namespace rehearse::comm
