// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <gtest/gtest.h>

namespace rehearse::parity {

// Both refusals of a case must have the same text, except for the name of the refusing part: `rehearse::send: takes a
// single tensor`, `ProcessGroupGloo::send takes a single tensor`. Gloo does not always name the call. kOtherWords in
// refusal_texts.cpp lists the cases whose texts are known to differ.
::testing::AssertionResult refusals_agree(const std::string& name, const std::string& ours, const std::string& gloo);

}  // namespace rehearse::parity
