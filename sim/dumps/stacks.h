// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <rehearse/exec/call_site.h>

namespace rehearse::sim {

// The stacks of the calls in all dumps, each stored once, because ranks make most calls from the same places.
class Stacks {
 public:
  using Frames = std::vector<exec::Frame>;  // innermost first

  static constexpr std::size_t kNone = 0;

  // Returns kNone for an empty stack.
  std::size_t add(Frames frames);
  const Frames& frames(std::size_t stack) const { return stacks_[stack]; }

  // The innermost place in the user's code. Without user code: the innermost frame. Empty if the dump holds no stack.
  Place place(std::size_t stack) const;

  // Each frame with its whole path, as PyTorch's analyzer writes it: "step at train.py:41".
  std::vector<std::string> lines(std::size_t stack) const;

 private:
  std::vector<Frames> stacks_ = {{}};
  std::map<std::string, std::size_t> known_;
};

// True for a frame of PyTorch or of Python itself.
bool is_of_libraries(const exec::Frame& frame);

}  // namespace rehearse::sim
