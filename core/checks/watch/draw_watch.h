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

// Sees what draws from a rank's default generator: the generator stands elsewhere behind an operator than before it.
class DrawWatch {
 public:
  // Around each operator of the rank; one that threw has no second one.
  void before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);
  void after();

  // See DrawLog::take().
  std::vector<Drawn> take(const std::string& name);

 private:
  // Where the generator stands, in few words: of two moments enough to see whether anything was drawn between them.
  struct Mark {
    std::uint64_t seed = 0;
    std::uint32_t first = 0;  // of the engine's state
    int left = 0;             // numbers of that state
    std::uint32_t next = 0;
    bool keeps_a_normal = false;

    static Mark now();
    bool is_fresh() const noexcept;  // it was set, and nothing has been drawn since
    bool operator==(const Mark&) const = default;
  };

  void look(const std::string& before_what);

  DrawLog log_;
  std::optional<Mark> mark_;  // when it was looked at last
  std::string call_;          // the operator that runs
};

}  // namespace rehearse::checks
