// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "core/comm/test_world.h"

namespace rehearse::comm {

// Two calls that do not fit each other. Rank 0 makes `first`. Later, rank 1 makes `second`.
struct MismatchCase {
  using Call = std::function<void(const ProcessGroup& group)>;

  const char* name;
  Call first, second;
  std::string first_text, second_text;
  std::vector<Mismatch::Field> fields;
};

inline void PrintTo(const MismatchCase& example, std::ostream* out) { *out << example.name; }

std::vector<MismatchCase> mismatch_cases();

}  // namespace rehearse::comm
