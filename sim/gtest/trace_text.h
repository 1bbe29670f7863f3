// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/gtest/rank_trace.h>

namespace rehearse {

// The traces of the calling fiber whose scopes have not ended, innermost first, each after a line end:
// "\ntrain_test.cpp:12: step 3".
std::string traces_of_this_fiber();

// Forgets the traces of fibers that were never unwound. Call it before a world, so that its fibers do not inherit them.
void forget_traces();

}  // namespace rehearse
