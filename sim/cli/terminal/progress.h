// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace rehearse::cli {

// Real time since some moment. The standard clocks do not serve here: on a rank's fiber they show virtual time, and
// reading them is a scheduling point, so that watching a run would change it.
std::chrono::nanoseconds real_time() noexcept;

// Shows people how far a run is: "12/20 60%  3.1/s  2.6 s left  loss 2.31".
//
// On a terminal it redraws one line, at most ten times a second and once more at the end. Elsewhere it writes lines of
// a log. With Lines::seconds, it writes a line every few seconds. Otherwise it writes a line at the first step and one
// for each tenth of the work or, if the total is unknown, for each doubling of the number of steps.
class Progress {
 public:
  using Clock = std::function<std::chrono::nanoseconds()>;
  using Write = std::function<void(std::string_view)>;

  enum class Lines { tenths, seconds };

  // The rate counts from the construction.
  Progress(bool terminal, Write write, Clock clock = real_time, Lines lines = Lines::tenths);

  void show(std::int64_t done, std::int64_t total, std::string_view text);

  // Removes the redrawn line.
  void clear();

 private:
  bool is_due(std::int64_t done, std::int64_t total, std::chrono::nanoseconds now);
  std::string line(std::int64_t done, std::int64_t total, std::string_view text, std::chrono::nanoseconds now) const;

  bool terminal_;
  Write write_;
  Clock clock_;
  Lines lines_;
  std::chrono::nanoseconds start_;
  std::chrono::nanoseconds shown_{-1};  // time of the last line; negative: never
  std::int64_t next_ = 0;               // without a terminal: the tenth, or the count, at which the next line is due
};

}  // namespace rehearse::cli
