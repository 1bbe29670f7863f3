// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rehearse::exec {

// One resolved stack frame. `file` is empty and `line` 0 when the binary carries no line table for it.
struct Frame {
  std::string function;
  std::string file;
  int line = 0;
};

// Where in the user's code something happened: return addresses, innermost first. Capturing walks the stack of the
// calling fiber (some microseconds); names and lines are looked up only when asked for.
class CallSite {
 public:
  CallSite() = default;

  // The stack of the caller, without this function. At most 64 frames.
  static CallSite capture();

  bool empty() const noexcept { return addresses_.empty(); }

  // All frames, innermost first. Slow: reads symbol and line tables (cached by address for the life of the process).
  std::vector<Frame> frames() const;

  // The innermost frame that is the user's own: not of LibTorch, the C++ library, Boost or Rehearse itself.
  // An empty Frame when there is none.
  Frame user_frame() const;

  // "train.cpp:41 in main::step" or, without line tables, the function's name; empty when unknown.
  std::string describe() const;

 private:
  std::vector<void*> addresses_;
};

}  // namespace rehearse::exec
