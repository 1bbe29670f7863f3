// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include "differential/run/inputs.h"

namespace rehearse_test::differential {

struct Case {
  Program program;
  std::vector<CallSpec> calls;
};

// Removes parts of the case, or makes them simpler, as long as `fails` returns true for the result.
Case shrink(Case failing, const std::function<bool(const Case&)>& fails);

}  // namespace rehearse_test::differential
