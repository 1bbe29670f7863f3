// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "differential/program/program.h"

namespace rehearse_test::differential {

// The program as a function that a person can read. It is close to C++: a tester of compile() turns it into a test by
// hand.
std::string text_of(const Program& program);

}  // namespace rehearse_test::differential
