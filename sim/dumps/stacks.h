// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <rehearse/exec/call_site.h>

namespace rehearse::sim {

// The stacks of the calls of all dumps, each of them once: ranks make most calls from the same places.
class Stacks {
 public:
  using Frames = std::vector<exec::Frame>;  // innermost first

  static constexpr std::size_t kNone = 0;

  // kNone for an empty stack.
  std::size_t add(Frames frames);
  const Frames& frames(std::size_t stack) const { return stacks_[stack]; }

  // Where the user's code is, "train.py:41 in step"; empty where the dump holds no stack.
  std::string place(std::size_t stack) const;

  // "step at train.py:41": each frame with its whole path, as Python's analyzer writes it.
  std::vector<std::string> lines(std::size_t stack) const;

 private:
  std::vector<Frames> stacks_ = {{}};
  std::map<std::string, std::size_t> known_;
};

// Is it a frame of PyTorch or of Python's own start-up?
bool is_of_libraries(const exec::Frame& frame);

}  // namespace rehearse::sim
