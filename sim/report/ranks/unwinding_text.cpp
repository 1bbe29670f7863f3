// SPDX-License-Identifier: BSD-3-Clause
#include "report/ranks/unwinding_text.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "report/ranks/rank_failure_text.h"

namespace rehearse::sim {
namespace {

constexpr std::size_t kExceptionsShown = 2;  // different exceptions

struct SameException {
  std::string text;
  std::string where;
  std::vector<int> ranks;
};

class Unwindings {
 public:
  explicit Unwindings(const Places& places) : places_(places) {}

  void add(int rank, const std::optional<exec::Unwinding>& unwinding) {
    if (!unwinding) return;
    exec::RankFailure failure;
    failure.error = unwinding->error;
    failure.what = unwinding->what;
    // A waiting call throws such an exception when the call fails or when the world ends. The exception follows from
    // what the report describes.
    if (is_timeout(failure) || is_a<CommError>(failure) || is_a<RankAborted>(failure)) return;
    auto place = places_.text(unwinding->thrown_at);
    auto text = fmt::format("'{}'{}{}", gist_of(failure), place.empty() ? "" : ", thrown at ", place);
    auto same = std::find_if(found_.begin(), found_.end(), [&](const auto& other) { return other.text == text; });
    if (same == found_.end()) same = found_.insert(same, {std::move(text), std::move(place), {}});
    auto& ranks = same->ranks;
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
  }

  CauseText first() const {
    CauseText all;
    for (std::size_t i = 0; i < std::min(found_.size(), kExceptionsShown); ++i) {
      auto ranks = found_[i].ranks;
      std::sort(ranks.begin(), ranks.end());
      all.text += fmt::format("{} {} unwinding an exception, {}; ", describe_ranks(ranks),
                              ranks.size() == 1 ? "was" : "were", found_[i].text);
      all.causes.push_back({Cause::Kind::threw, std::move(ranks), "", found_[i].where});
    }
    return all;
  }

 private:
  const Places& places_;
  std::vector<SameException> found_;
};

}  // namespace

CauseText unwinding_first(const RunRecord& record, const Places& places) {
  Unwindings unwindings(places);
  for (const auto& failure : record.outcome.failures) unwindings.add(failure.rank, failure.unwinding);
  for (const auto& fiber : record.outcome.blocked) unwindings.add(fiber.rank, fiber.unwinding);
  return unwindings.first();
}

}  // namespace rehearse::sim
