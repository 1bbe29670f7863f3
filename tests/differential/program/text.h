// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "differential/program/program.h"

namespace rehearse_test::differential {

// The program as a readable function. It is close to C++, so that a developer can turn it into a test by hand.
std::string text_of(const Program& program);

}  // namespace rehearse_test::differential
