// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/job/launched.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

#include <rehearse/job/runner.h>

namespace rehearse {
namespace {

// The environment variables of one kind of launcher.
struct Variables {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* only_with;  // the other variables count only together with this one; null: always
};

// Slurm also sets SLURM_PROCID for a batch script, which is not one of several processes. Only a step has
// SLURM_STEP_ID.
constexpr std::array kLaunchers{
    Variables{"RANK", "WORLD_SIZE", "LOCAL_RANK", nullptr},
    Variables{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", nullptr},
    Variables{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_ID"},
};

constexpr int kRanksMost = 65'536;

int number_of(const char* variable, const Variables& beside, int least, int most) {
  const char* const value = std::getenv(variable);
  if (value == nullptr) {
    throw RunnerUnavailable(fmt::format("the environment has {} and no {}: both say which process of a job this is",
                                        beside.rank, variable));
  }
  const std::string_view text(value);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most) {
    throw RunnerUnavailable(
        fmt::format("{} is \"{}\" in the environment; it takes an integer from {} to {}", variable, text, least, most));
  }
  return number;
}

}  // namespace

std::optional<LaunchedProcess> launched_process() {
  for (const auto& names : kLaunchers) {
    if (std::getenv(names.rank) == nullptr) continue;
    if (names.only_with != nullptr && std::getenv(names.only_with) == nullptr) continue;
    LaunchedProcess process;
    process.rank_variable = names.rank;
    process.size = number_of(names.size, names, 1, kRanksMost);
    process.rank = number_of(names.rank, names, 0, process.size - 1);
    if (std::getenv(names.local_rank) != nullptr)
      process.local_rank = number_of(names.local_rank, names, 0, process.size - 1);
    if (std::getenv("TORCHELASTIC_RESTART_COUNT") != nullptr)
      process.restart_count = number_of("TORCHELASTIC_RESTART_COUNT", names, 0, std::numeric_limits<int>::max());
    return process;
  }
  return std::nullopt;
}

}  // namespace rehearse
