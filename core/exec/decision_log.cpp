// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/exec/decision_log.h>

#include <stdexcept>

#include <fmt/format.h>

namespace rehearse {

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
  }
  return "unknown";
}

void DecisionLog::record(ChoiceKind kind, std::span<const std::uint32_t> candidates, std::uint32_t answer) {
  const auto options = static_cast<std::uint32_t>(candidates.size());
  decisions_.push_back({kind, options, answer});
  mix((static_cast<std::uint64_t>(kind) << 56) ^ (static_cast<std::uint64_t>(options) << 32) ^ answer);
  mix(candidates[answer]);
}

std::uint32_t Decisions::choose(ChoiceKind kind, std::span<const std::uint32_t> candidates) {
  if (candidates.empty()) {
    throw std::logic_error(fmt::format("choice '{}' has no candidates", to_string(kind)));
  }
  if (failure_ != nullptr) [[unlikely]]
    std::rethrow_exception(failure_);
  if (candidates.size() == 1) return 0;
  try {
    return ask(kind, candidates);
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

std::uint32_t Decisions::ask(ChoiceKind kind, std::span<const std::uint32_t> candidates) {
  const auto answer = oracle_.choose(kind, candidates);
  if (answer >= candidates.size()) {
    throw std::logic_error(fmt::format("the oracle answered {} to choice '{}', which has candidates 0..{}", answer,
                                       to_string(kind), candidates.size() - 1));
  }
  log_.record(kind, candidates, answer);
  return answer;
}

}  // namespace rehearse
