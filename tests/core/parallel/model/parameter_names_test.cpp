// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "parallel/model/parameter_names.h"

namespace {

using rehearse::parallel::named_parameters_in;

const std::vector<std::string> kNames = {"embed.weight", "head.weight", "head.bias"};

// The texts are those of LibTorch 2.11's reducer.cpp.
TEST(ParameterNames, UnfinishedReduction_NamesAllAndIgnoresTheRank) {
  EXPECT_EQ(named_parameters_in("...\nParameter indices which did not receive grad for rank 2: 0 1\n In addition, you "
                                "can set 7 things",
                                kNames),
            "parameters: embed.weight, head.weight");
}

TEST(ParameterNames, OtherTextsAndUnknownIndices_GiveNothing) {
  EXPECT_EQ(named_parameters_in("connection closed by peer 1", kNames), "");
  EXPECT_EQ(named_parameters_in("Parameter indices which did not receive grad for rank 1: 9", kNames), "");
  EXPECT_EQ(named_parameters_in("Parameter indices which did not receive grad for rank ", kNames), "");
}

}  // namespace
