// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include "checks/watch/draw_log.h"

namespace c10 {
class OperatorHandle;
}

namespace rehearse::checks {

// Finds the calls that draw from a rank's default generator, by comparing the generator's state before and after each
// operator.
class DrawWatch {
 public:
  // Call these before and after each operator of the rank. If an operator throws, after() is not called.
  void before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);
  void after();

  // See DrawLog::take().
  std::vector<Drawn> take(const std::string& name);

 private:
  // A short summary of the generator's state; two of them show whether a number was drawn in between.
  struct Mark {
    std::uint64_t seed = 0;
    std::uint32_t first = 0;  // first number of the engine's state
    int left = 0;             // numbers left in that state
    std::uint32_t next = 0;
    bool keeps_a_normal = false;

    static Mark now();
    bool is_fresh() const noexcept;  // the generator has been seeded, and nothing has been drawn since
    bool operator==(const Mark&) const = default;
  };

  void look(const std::string& before_what);

  DrawLog log_;
  std::optional<Mark> mark_;  // as of the last look() or after()
  std::string call_;          // the running operator
};

}  // namespace rehearse::checks
