// SPDX-License-Identifier: BSD-3-Clause
#include "process_check_options.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <rehearse/job/runner.h>

namespace rehearse::real {

CheckOptions check_options() {
  CheckOptions options;
  if (const char* const checks = std::getenv("REHEARSE_CHECKS")) {
    const std::string_view text(checks);
    if (text != "0" && text != "1") {
      throw RunnerUnavailable(fmt::format(
          "REHEARSE_CHECKS is \"{}\" in the environment; it takes 1 (calls of different ranks are compared) "
          "or 0",
          text));
    }
    options.calls = text == "1";
  }
  if (const char* const timeout = std::getenv("REHEARSE_CHECK_TIMEOUT")) {
    const std::string_view text(timeout);
    double seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size() || !(seconds >= 0.5) || seconds > 86'400) {
      throw RunnerUnavailable(fmt::format(
          "REHEARSE_CHECK_TIMEOUT is \"{}\" in the environment; it takes seconds, from 0.5 to 86400", text));
    }
    options.check_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  }
  return options;
}

}  // namespace rehearse::real
