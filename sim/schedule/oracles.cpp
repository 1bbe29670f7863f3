// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/oracles.h>

#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/sim/format_time.h>

namespace rehearse::sim {
namespace {

std::optional<VirtualTime> time_of_run() {
  auto* executor = exec::RankExecutor::current();
  if (executor == nullptr) return std::nullopt;
  return executor->clock().now();
}

std::string question(const Decision& decision) {
  return fmt::format("{} among {}", to_string(decision.kind), decision.options);
}

// Taking a compiled graph from a folder is a choice only if the folder contains the graph, so runs with different
// folders make different choices.
std::string about_folders(const std::optional<Decision>& expected, const std::optional<Decision>& found) {
  const bool had = expected && expected->kind == ChoiceKind::compile_cache;
  const bool has = found && found->kind == ChoiceKind::compile_cache;
  if (had == has) return "";
  return fmt::format(
      ". {} a compiled graph in the folder of CompileOptions::cache_dir, and {}. Replay with the folder "
      "as it was when that run began",
      had ? "The run of the log found" : "This run finds", had ? "this one does not" : "the run of the log did not");
}

std::string describe_step(ReplayError::Problem problem, std::size_t step, const std::optional<Decision>& expected,
                          const std::optional<Decision>& found, const std::optional<VirtualTime>& at) {
  const std::string when = at ? fmt::format(" at t={}", format_time(*at)) : "";
  switch (problem) {
    case ReplayError::Problem::past_end:
      return fmt::format("the replay differs from decision {} on{}: the log ends there, this run asks {}", step, when,
                         question(*found));
    case ReplayError::Problem::left_over:
      return fmt::format("the replay differs from decision {} on{}: this run ends there, the log has {}", step, when,
                         question(*expected));
    case ReplayError::Problem::other_kind:
    case ReplayError::Problem::other_options:
      break;
  }
  return fmt::format("the replay differs at decision {}{}: the log has {}, this run asks {}", step, when,
                     question(*expected), question(*found));
}

std::string describe(ReplayError::Problem problem, std::size_t step, const std::optional<Decision>& expected,
                     const std::optional<Decision>& found, const std::optional<VirtualTime>& at) {
  return describe_step(problem, step, expected, found, at) + about_folders(expected, found);
}

}  // namespace

std::uint32_t RandomOracle::choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                                   std::span<const std::uint32_t> weights) {
  const auto number = static_cast<std::size_t>(kind);
  while (streams_.size() <= number) streams_.emplace_back(seed_, streams_.size());
  auto& stream = streams_[number];
  return weights.empty() ? stream.below(static_cast<std::uint32_t>(candidates.size())) : stream.weighted(weights);
}

ReplayError::ReplayError(Problem problem, std::size_t step, std::optional<Decision> expected,
                         std::optional<Decision> found, std::optional<VirtualTime> at)
    : std::runtime_error(describe(problem, step, expected, found, at)),
      problem_(problem),
      step_(step),
      expected_(expected),
      found_(found),
      at_(at) {}

ReplayOracle::ReplayOracle(std::vector<Decision> log, PastEnd past_end, std::uint64_t seed)
    : log_(std::move(log)), past_end_(past_end), beyond_(seed) {}

std::uint32_t ReplayOracle::choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                                   std::span<const std::uint32_t> weights) {
  const Decision found{kind, static_cast<std::uint32_t>(candidates.size()), 0};
  // Draw even while the log answers. Then the draws after the end of the log are those of the log's own run.
  const std::uint32_t drawn = past_end_ == PastEnd::random ? beyond_.choose(kind, candidates, weights) : 0;
  if (next_ >= log_.size()) {
    if (past_end_ == PastEnd::stop) {
      throw ReplayError(ReplayError::Problem::past_end, next_, std::nullopt, found, time_of_run());
    }
    ++next_;
    return drawn;
  }
  const Decision& expected = log_[next_];
  if (expected.kind != kind) {
    throw ReplayError(ReplayError::Problem::other_kind, next_, expected, found, time_of_run());
  }
  if (expected.options != found.options) {
    throw ReplayError(ReplayError::Problem::other_options, next_, expected, found, time_of_run());
  }
  ++next_;
  return expected.answer;
}

void ReplayOracle::require_used_up() const {
  if (next_ >= log_.size()) return;
  throw ReplayError(ReplayError::Problem::left_over, next_, log_[next_], std::nullopt, time_of_run());
}

}  // namespace rehearse::sim
