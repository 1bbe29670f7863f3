// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::shapes {

// A computation whose ShapeErrors this room catches itself: the answer is then "not known" or, for a GuardProgram, that
// the guard fails. All other ShapeErrors reach the code that asked. Observers of throws tell them apart by
// in_progress().
class Attempt {
 public:
  Attempt();
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // True if an Attempt lives in the calling fiber.
  static bool in_progress() noexcept;
};

}  // namespace rehearse::shapes
