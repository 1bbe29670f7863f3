// SPDX-License-Identifier: BSD-3-Clause
#include "report/ranks/rank_failure_text.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse/sim/fault.h>
#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/sim/format_time.h>

namespace rehearse::sim {
namespace {

// The texts of the exceptions that are nested in `error` (std::nested_exception), outermost first.
std::vector<std::string> causes_of(std::exception_ptr error) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> causes;
  while (error != nullptr && causes.size() < kMost) {
    try {
      std::rethrow_exception(std::exchange(error, nullptr));
    } catch (const std::nested_exception& exception) {
      error = exception.nested_ptr();
    } catch (...) {  // nothing is nested in it
    }
    if (error == nullptr) break;
    try {
      std::rethrow_exception(error);
    } catch (const c10::Error& inner) {
      causes.push_back(inner.what_without_backtrace());
    } catch (const std::exception& inner) {
      causes.emplace_back(inner.what());
    } catch (...) {
      causes.emplace_back("an exception without a text");
    }
  }
  return causes;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const auto begin = std::min(text.find_first_not_of(kSpaces), text.size());
  const auto end = text.find_last_not_of(kSpaces);
  return end == text.npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

// The exception's own text, from its first line that is not empty.
std::string own_text_of(const exec::RankFailure& failure) {
  std::string text = failure.what;
  try {
    std::rethrow_exception(failure.error);
  } catch (const c10::Error& error) {
    text = error.what_without_backtrace();
  } catch (...) {  // its text is in `failure`
  }
  return std::string(trimmed(text));
}

// The notes that code added to the exception while it passed through (c10::Error::context()).
std::vector<std::string> contexts_of(const exec::RankFailure& failure) {
  try {
    std::rethrow_exception(failure.error);
  } catch (const c10::Error& error) {
    return error.context();
  } catch (...) {  // it has no notes
  }
  return {};
}

// The first line says what went wrong. In a text of TorchScript, which begins with a trace, the last line does.
std::string_view telling_line(std::string_view text) {
  text = trimmed(text);
  const auto first = text.substr(0, text.find('\n'));
  if (first.find("TorchScript") == first.npos) return trimmed(first);
  auto last = trimmed(text.substr(text.rfind('\n') + 1));
  constexpr std::string_view kType = "RuntimeError: ";
  if (last.starts_with(kType)) last.remove_prefix(kType.size());
  return last;
}

// The place of the last full stop with a space after it; npos: none. Ignores the dots of an ellipsis.
std::size_t last_stop(std::string_view text) {
  auto stop = text.rfind(". ");
  while (stop != text.npos && stop > 0 && text[stop - 1] == '.') stop = text.rfind(". ", stop - 1);
  return stop;
}

// As many sentences as fit into a headline; if the first one is too long, its beginning.
std::string gist_of_one(std::string_view text) {
  constexpr std::size_t kLong = 160;
  const auto line = telling_line(text);
  if (line.size() <= kLong) return std::string(line);
  // An early full stop ends an abbreviation, or a sentence that says almost nothing.
  constexpr std::size_t kShort = 60;
  const auto stop = last_stop(line.substr(0, kLong));
  if (stop != line.npos && stop >= kShort) return std::string(line.substr(0, stop));
  const auto space = line.substr(0, kLong).rfind(' ');
  return std::string(line.substr(0, space == line.npos ? kLong : space)) + " ...";
}

constexpr std::size_t kExceptionsShown = 2;  // different exceptions

struct SameException {
  std::string text;
  Place where;
  std::vector<int> ranks;
};

class Unwindings {
 public:
  Unwindings(const RunRecord& record, const Places& places) : record_(record), places_(places) {}

  void add(int rank, const std::optional<exec::Unwinding>& unwinding) {
    if (!unwinding) return;
    exec::RankFailure failure;
    failure.error = unwinding->error;
    failure.what = unwinding->what;
    // A waiting call throws such an exception when the call fails or when the world ends. The exception follows from
    // what the report describes, unless a fault made the call fail.
    const bool follows = is_a<CommError>(failure) && !is_injected(text_of(failure), rank);
    if (is_timeout(failure) || follows || is_a<RankAborted>(failure)) return;
    auto place = places_.place(unwinding->thrown_at);
    auto text = fmt::format("'{}'{}{}", gist_of(failure), place.empty() ? "" : ", thrown", place.at());
    auto same = std::ranges::find_if(found_, [&](const auto& other) { return other.text == text; });
    if (same == found_.end()) same = found_.insert(same, {std::move(text), std::move(place), {}});
    auto& ranks = same->ranks;
    if (std::ranges::find(ranks, rank) == ranks.end()) ranks.push_back(rank);
  }

  CauseText first() const {
    CauseText all;
    for (std::size_t i = 0; i < std::min(found_.size(), kExceptionsShown); ++i) {
      auto ranks = found_[i].ranks;
      std::ranges::sort(ranks);
      all.text += fmt::format("{} {} unwinding an exception, {}; ", describe_ranks(ranks),
                              ranks.size() == 1 ? "was" : "were", found_[i].text);
      all.causes.push_back({Cause::Kind::threw, std::move(ranks), "", found_[i].where});
    }
    return all;
  }

 private:
  bool is_injected(const std::string& text, int rank) const {
    return std::ranges::any_of(record_.faults, [&](const FaultLine& fault) {
      return parse_fault(fault.fault).verb == Fault::Verb::fail_op &&
             std::ranges::any_of(fault.fired, [&](const FaultLine::Firing& firing) {
               return firing.rank == rank && text.starts_with(firing.call);
             });
    });
  }

  const RunRecord& record_;
  const Places& places_;
  std::vector<SameException> found_;
};

}  // namespace

bool is_timeout(const exec::RankFailure& failure) {
  // A store throws one type for all its errors, and says "wait timeout after 5ms".
  return is_a<TimeoutError>(failure) ||
         (is_a<c10::DistStoreError>(failure) && own_text_of(failure).find("timeout") != std::string::npos);
}

std::string text_of(const exec::RankFailure& failure) {
  std::string text = own_text_of(failure);
  for (const auto& cause : causes_of(failure.error)) text += "\ncaused by: " + cause;
  return text;
}

std::string gist_of(const exec::RankFailure& failure) {
  std::string gist = gist_of_one(own_text_of(failure));
  for (const auto& context : contexts_of(failure)) {
    if (gist.find(context) == std::string::npos) gist += fmt::format(" ({})", gist_of_one(context));
  }
  for (const auto& cause : causes_of(failure.error)) gist += ", caused by: " + gist_of_one(cause);
  return gist;
}

bool follows_a_timeout(const exec::RankFailure& failure) {
  return failure.gave_up && failure.gave_up->at == failure.at &&
         text_of(failure).find(failure.gave_up->call) == std::string::npos;
}

CauseText unwinding_first(const RunRecord& record, const Places& places) {
  Unwindings unwindings(record, places);
  for (const auto& failure : record.outcome.failures) unwindings.add(failure.rank, failure.unwinding);
  for (const auto* const fibers : {&record.outcome.blocked, &record.outcome.hang}) {
    for (const auto& fiber : *fibers) unwindings.add(fiber.rank, fiber.unwinding);
  }
  return unwindings.first();
}

}  // namespace rehearse::sim
