// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/exec/decision_log.h>

#include <limits>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

#include <rehearse_internal/exec/check.h>

namespace rehearse {
namespace {

void require_weights(ChoiceKind kind, std::size_t candidates, std::span<const std::uint32_t> weights) {
  if (weights.size() != candidates) {
    throw std::logic_error(fmt::format("choice '{}' has {} candidates and {} weights; it takes one for each, or none",
                                       to_string(kind), candidates, weights.size()));
  }
  const auto sum = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  if (sum == 0 || sum > std::numeric_limits<std::uint32_t>::max()) {
    throw std::logic_error(
        fmt::format("choice '{}' has weights that add up to {}; it takes 1 to 2^32 - 1", to_string(kind), sum));
  }
}

}  // namespace

std::string_view to_string(ChoiceKind kind) noexcept {
  switch (kind) {
    case ChoiceKind::next_fiber:
      return "next_fiber";
    case ChoiceKind::receive_any_source:
      return "receive_any_source";
    case ChoiceKind::latency:
      return "latency";
    case ChoiceKind::fault:
      return "fault";
    case ChoiceKind::compile_cache:
      return "compile_cache";
    case ChoiceKind::equal_timers:
      return "equal_timers";
    case ChoiceKind::listing:
      return "listing";
  }
  return "unknown";
}

void DecisionLog::record(ChoiceKind kind, std::span<const std::uint32_t> candidates, std::uint32_t answer) {
  REHEARSE_CHECK(answer < candidates.size(), to_string(kind), answer, candidates.size());
  if (!keeps_) return;
  const auto options = static_cast<std::uint32_t>(candidates.size());
  decisions_.push_back({kind, options, answer});
  hash_.add((static_cast<std::uint64_t>(kind) << 56) ^ (static_cast<std::uint64_t>(options) << 32) ^ answer);
  hash_.add(candidates[answer]);
}

std::uint32_t Decisions::choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                                std::span<const std::uint32_t> weights) {
  if (candidates.empty()) {
    throw std::logic_error(fmt::format("choice '{}' has no candidates", to_string(kind)));
  }
  if (!weights.empty()) [[unlikely]]
    require_weights(kind, candidates.size(), weights);
  if (failure_ != nullptr) [[unlikely]]
    std::rethrow_exception(failure_);
  if (candidates.size() == 1) return 0;
  try {
    return ask(kind, candidates, weights);
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

std::uint32_t Decisions::ask(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                             std::span<const std::uint32_t> weights) {
  const auto answer = oracle_.choose(kind, candidates, weights);
  if (answer >= candidates.size()) {
    throw std::logic_error(fmt::format("the oracle answered {} to choice '{}', which has candidates 0..{}", answer,
                                       to_string(kind), candidates.size() - 1));
  }
  log_.record(kind, candidates, answer);
  return answer;
}

}  // namespace rehearse
