// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/place.h>

namespace rehearse::exec {

// One resolved stack frame. `file` is empty and `line` 0 when the binary carries no line table for it.
struct Frame {
  std::string function;
  std::string file;  // as compiled
  int line = 0;
  std::string short_file = {};  // the shortest end of `file` that no other source file of the binary has
};

// "train.cpp:41 in main::step" or, without line tables, the function's name. If the binary has another train.cpp,
// "models/train.cpp:41 in main::step". Names of Python functions stay as they are, as "<lambda>" does.
std::string describe(const Frame& frame);
// With describe() as the text.
Place place_of(const Frame& frame);
// The places with a line, made by place_of() in this process, of whose text `words` speak. In order of their texts.
std::vector<Place> places_in(std::string_view words);

// A place in the user's code, as a stack of return addresses, innermost first. capture() walks the stack of the calling
// fiber, which takes a few microseconds; names and lines are looked up only on demand.
class CallSite {
 public:
  CallSite() = default;

  static constexpr std::size_t kFramesMax = 64;

  // The stack of the caller, without capture() itself. Inside an exec::CallSiteScope, the addresses of the scope come
  // first. At most kFramesMax frames.
  static CallSite capture();

  // Makes a call site from a stack captured earlier: return addresses, innermost first.
  static CallSite from_addresses(std::span<void* const> addresses);

  // Writes the caller's return addresses to `out` and returns how many. Allocates nothing. `skip`: how many of the
  // innermost frames to leave out; 0 keeps the caller's own.
  static std::size_t capture_to(std::span<void*> out, std::size_t skip = 0) noexcept;

  bool empty() const noexcept { return addresses_.empty(); }

  // All frames, innermost first. Slow: reads symbol and line tables, and caches the result by address for the life of
  // the process.
  std::vector<Frame> frames() const;

  // All frames of the user's own code, innermost first. Excludes Rehearse and the libraries that it knows: LibTorch,
  // CUDA, the C and C++ libraries, Boost, fmt, GoogleTest.
  std::vector<Frame> user_frames() const;

  // user_frames() as places. If the innermost frames have no line, the first place is that of the first frame that has
  // a line. Its text also names the innermost frame: "sync_mean, from main.cpp:9 in main".
  std::vector<Place> user_places() const;

  // The first of user_places(); empty if there is none.
  Place place() const;

  // The text of place().
  std::string describe() const { return place().text; }

  // Says how to make lines appear: "compile with -g1 to see lines". Empty if the innermost user frame has its line, or
  // if no frame can be the user's.
  std::string how_to_see_lines() const;

  // Equal stacks compare equal. The order differs between processes: use it for lookup only.
  auto operator<=>(const CallSite&) const = default;

 private:
  std::vector<void*> addresses_;
};

}  // namespace rehearse::exec
