// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/rank_context.h>

#include <fmt/format.h>
#include <unistd.h>

namespace rehearse {

// The name contains the parent's process id, because all processes of a job have the same parent, including restarted
// ones.
std::filesystem::path RankContext::scratch_folder() {
  auto folder =
      std::filesystem::temp_directory_path() / fmt::format("rehearse-{}", getppid()) / fmt::format("rank-{}", rank());
  std::filesystem::create_directories(folder);
  return folder;
}

void RankContext::expect(bool holds, std::string_view what, std::string_view detail) {
  if (holds) {
    count_check(what);
    return;
  }
  throw CheckError(detail.empty() ? fmt::format("check \"{}\" did not hold", what)
                                  : fmt::format("check \"{}\" did not hold: {}", what, detail));
}

void RankContext::result(std::string_view name, const at::Tensor& value) {
  keep_result(name, value.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
}

}  // namespace rehearse
