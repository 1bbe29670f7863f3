// SPDX-License-Identifier: BSD-3-Clause
#include "cli/terminal/progress.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rehearse::cli {
namespace {

constexpr auto kRedrawEvery = std::chrono::milliseconds(100);
constexpr auto kLineEvery = std::chrono::seconds(5);
constexpr std::int64_t kLines = 10;

// For example "0.8 s", "42 s", "3 min 20 s", "2 h 5 min".
std::string rough_duration(double seconds) {
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = std::lround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string rough_rate(double per_second) {
  return per_second < 99.95 ? fmt::format("{:.1f}/s", per_second) : fmt::format("{:.0f}/s", per_second);
}

}  // namespace

std::chrono::nanoseconds real_time() noexcept {
  timespec time{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

Progress::Progress(bool terminal, Write write, Clock clock, Lines lines)
    : terminal_(terminal), write_(std::move(write)), clock_(std::move(clock)), lines_(lines), start_(clock_()) {}

void Progress::show(std::int64_t done, std::int64_t total, std::string_view text) {
  const auto now = clock_();
  if (!is_due(done, total, now)) return;
  const auto shown = line(done, total, text, now);
  write_(terminal_ ? fmt::format("\r\033[K{}", shown) : shown + "\n");
  shown_ = now;
}

bool Progress::is_due(std::int64_t done, std::int64_t total, std::chrono::nanoseconds now) {
  if (terminal_) return shown_.count() < 0 || now - shown_ >= kRedrawEvery || done == total;
  if (lines_ == Lines::seconds) return now - (shown_.count() < 0 ? start_ : shown_) >= kLineEvery;
  const std::int64_t reached = total > 0 ? std::min(done, total) * kLines / total : done;
  if (reached < next_) return false;
  next_ = total > 0 ? reached + 1 : std::max<std::int64_t>(1, 2 * reached);
  return true;
}

std::string Progress::line(std::int64_t done, std::int64_t total, std::string_view text,
                           std::chrono::nanoseconds now) const {
  std::string result = total > 0 ? fmt::format("{}/{} {}%", done, total, done * 100 / total) : fmt::format("{}", done);
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  if (done > 0 && elapsed > 0) {
    const double rate = static_cast<double>(done) / elapsed;
    result += "  " + rough_rate(rate);
    if (done < total) result += fmt::format("  {} left", rough_duration(static_cast<double>(total - done) / rate));
  }
  return text.empty() ? result : fmt::format("{}  {}", result, text);
}

void Progress::clear() {
  if (terminal_ && shown_.count() >= 0) write_("\r\033[K");
  shown_ = std::chrono::nanoseconds(-1);
}

}  // namespace rehearse::cli
