// SPDX-License-Identifier: BSD-3-Clause
#include "report/failure_text.h"

#include <c10/util/Exception.h>

namespace rehearse::sim {

std::string text_of(const exec::RankFailure& failure) {
  try {
    std::rethrow_exception(failure.error);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (...) {
    return failure.what;
  }
}

std::string gist_of(const exec::RankFailure& failure) {
  constexpr std::size_t kLong = 160;
  const std::string text = text_of(failure);
  const std::string line = text.substr(0, text.find('\n'));
  return line.size() > kLong ? line.substr(0, line.find(". ")) : line;
}

}  // namespace rehearse::sim
