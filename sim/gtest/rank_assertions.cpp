// SPDX-License-Identifier: BSD-3-Clause
#include "rank_assertions.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/sim/format_time.h>

#include "trace_text.h"

namespace rehearse {
namespace {

constexpr std::string_view kTraces = "\nGoogle Test trace:";

std::string place(const ::testing::TestPartResult& result) {
  if (result.file_name() == nullptr) return "unknown place";
  return fmt::format("{}:{}", result.file_name(), result.line_number());
}

// GoogleTest's macro passes the result on, with the file and line of the assertion.
void report(const ::testing::TestPartResult& result, const std::string& text) {
  GTEST_MESSAGE_AT_(result.file_name(), result.line_number(), text.c_str(), result.type());
}

}  // namespace

RankAssertions::RankAssertions(const WorldOptions& options)
    : seed_(options.seed), ranks_(static_cast<std::size_t>(std::max(options.ranks, 0))) {
  forget_traces();
}

World::Body RankAssertions::wrap(World::Body body) {
  return [this, body = std::move(body)](RankContext& context) {
    Rank& rank = ranks_.at(static_cast<std::size_t>(context.rank()));
    rank.explains = ++rank.runs > context.incarnation() + 1;
    rank.left_early.clear();
    body(context);
    if (!rank.left_early.empty()) throw AssertionEndedRank(rank.left_early);
  };
}

void RankAssertions::take(const ::testing::TestPartResult& result) {
  if (!exec::this_rank::is_fiber()) {
    found_.push_back(result);
    return;
  }
  const auto* executor = exec::RankExecutor::current();
  if (executor != nullptr && executor->ending()) return;
  const int number = exec::this_rank::rank();
  Rank& rank = ranks_.at(static_cast<std::size_t>(number));
  if (result.fatally_failed()) rank.left_early = fmt::format("a fatal assertion failed at {}", place(result));
  if (result.skipped()) {
    rank.left_early = fmt::format("GTEST_SKIP at {} is for the test's body, not for a rank", place(result));
    return;
  }
  if (rank.explains) return;
  // Leave out the traces around the world: GoogleTest adds them when forward() passes the result on inside their
  // scopes.
  const std::string_view message = result.message();
  const auto own = traces_of_this_fiber();
  const auto text = fmt::format("{}\n[rank {} at {}, seed {}]{}{}", message.substr(0, message.find(kTraces)), number,
                                sim::format_time(exec::this_rank::now()), seed_, own.empty() ? "" : kTraces, own);
  found_.emplace_back(result.type(), result.file_name(), result.line_number(), text.c_str());
}

bool RankAssertions::failed() const noexcept {
  return std::ranges::any_of(found_, [](const auto& result) { return result.failed(); });
}

void RankAssertions::forward(std::string_view footer) const {
  const auto last = std::find_if(found_.rbegin(), found_.rend(), [](const auto& result) { return result.failed(); });
  for (const auto& result : found_) {
    std::string text = result.message();
    if (!footer.empty() && last != found_.rend() && &result == &*last) text += fmt::format("\n{}", footer);
    report(result, text);
  }
}

}  // namespace rehearse
