// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/gtest/rank_trace.h>

namespace rehearse {

// The traces in whose scopes the calling fiber is, innermost first, a line each: "train_test.cpp:12: step 3".
std::string traces_of_this_fiber();

// Those of fibers that were never unwound: before a world, so that none are taken for its own.
void forget_traces();

}  // namespace rehearse
