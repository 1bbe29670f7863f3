// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/rank_context.h>

#include <fmt/format.h>
#include <unistd.h>

namespace rehearse {
namespace {

// The name contains the parent's process id, because all processes of a job have the same parent, including restarted
// ones.
std::filesystem::path folder_of_job(const std::string& name) {
  auto folder = std::filesystem::temp_directory_path() / fmt::format("rehearse-{}", getppid()) / name;
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace

std::filesystem::path RankContext::scratch_folder() { return folder_of_job(fmt::format("rank-{}", rank())); }
std::filesystem::path RankContext::shared_folder() { return folder_of_job("shared"); }

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
