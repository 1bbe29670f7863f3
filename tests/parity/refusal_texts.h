// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <gtest/gtest.h>

namespace rehearse::parity {

// The texts with which both refuse a case must agree but for who refuses: `rehearse::send: takes a single tensor`,
// `ProcessGroupGloo::send takes a single tensor`; gloo does not always name the call. Some cases are known to differ.
::testing::AssertionResult refusals_agree(const std::string& name, const std::string& ours, const std::string& gloo);

}  // namespace rehearse::parity
