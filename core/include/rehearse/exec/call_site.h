// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace rehearse::exec {

// One resolved stack frame. `file` is empty and `line` 0 when the binary carries no line table for it.
struct Frame {
  std::string function;
  std::string file;
  int line = 0;
};

// "train.cpp:41 in main::step" or, without line tables, the function's name.
std::string describe(const Frame& frame);

// Where in the user's code something happened: return addresses, innermost first. Capturing walks the stack
// of the calling fiber (some microseconds); names and lines are looked up only when asked for.
class CallSite {
 public:
  CallSite() = default;

  static constexpr std::size_t kFramesMax = 64;

  // The stack of the caller, without this function. At most kFramesMax frames.
  static CallSite capture();

  // A stack captured earlier: return addresses, innermost first.
  static CallSite from_addresses(std::span<void* const> addresses);

  // Writes the caller's return addresses to `out` and returns how many; allocates nothing. `skip`: how many
  // of the innermost frames to leave out, 0 being the caller's own.
  static std::size_t capture_to(std::span<void*> out, std::size_t skip = 0) noexcept;

  bool empty() const noexcept { return addresses_.empty(); }

  // All frames, innermost first. Slow: reads symbol and line tables (cached by address for the life of the
  // process).
  std::vector<Frame> frames() const;

  // The innermost frame that is the user's own: not of LibTorch, the C++ library, Boost or Rehearse itself.
  // An empty Frame when there is none.
  Frame user_frame() const;

  // All frames of the user's own, innermost first.
  std::vector<Frame> user_frames() const;

  // user_frames() in words. Where the innermost have no line, the first that has one stands behind the innermost one,
  // and what lies between is left out: "sync_mean, from main.cpp:9 in main".
  std::vector<std::string> user_lines() const;

  // The first of user_lines(); empty when there is none.
  std::string describe() const;

  // What to compile with, where the user's code has no line here; empty where nothing is missing.
  std::string how_to_see_lines() const;

  // Equal stacks are equal. The order differs from process to process: for lookup only.
  auto operator<=>(const CallSite&) const = default;

 private:
  std::vector<void*> addresses_;
};

}  // namespace rehearse::exec
