// SPDX-License-Identifier: BSD-3-Clause
#include "bit_equal.h"

#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rehearse::test {
namespace {

using testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(BitEqual, SameBits_Match) {
  for (const auto dtype : {at::kBool, at::kByte, at::kLong, at::kFloat, at::kDouble, at::kHalf, at::kBFloat16,
                           at::kComplexFloat, at::kComplexDouble}) {
    const at::Tensor some = at::arange(6).view({2, 3}).to(dtype);
    EXPECT_THAT(some, BitEqual(some.clone())) << dtype;
    EXPECT_THAT(some.t(), BitEqual(some.t().contiguous())) << dtype;
    EXPECT_THAT(some, Not(BitEqual(some.logical_not().to(dtype)))) << dtype;
    EXPECT_THAT(some[0][0], BitEqual(at::zeros({}, dtype))) << dtype;
    EXPECT_THAT(some.slice(0, 0, 0), BitEqual(at::empty({0, 3}, dtype))) << dtype;
  }
  EXPECT_THAT(at::full({2}, kNan), BitEqual(at::full({2}, kNan)));
  EXPECT_THAT(at::eye(3).to_sparse(), BitEqual(at::eye(3)));
  EXPECT_THAT(at::ones({2}).requires_grad_() * 2, BitEqual(at::full({2}, 2.0)));
  EXPECT_THAT(at::Tensor(), BitEqual(at::Tensor()));
}

TEST(BitEqual, Difference_IsSaid) {
  const auto between = [](const at::Tensor& found, const at::Tensor& expected) {
    EXPECT_THAT(found, Not(BitEqual(expected)));
    return bit_difference(found, expected);
  };
  EXPECT_EQ(between(at::Tensor(), at::ones({2})), "is undefined instead of Float[2]");
  EXPECT_EQ(between(at::ones({2}), at::Tensor()), "is Float[2] instead of undefined");
  EXPECT_EQ(between(at::ones({2}), at::ones({2}, at::kDouble)), "is Float[2] instead of Double[2]");
  EXPECT_EQ(between(at::ones({2, 1}), at::ones({2})), "is Float[2, 1] instead of Float[2]");
  EXPECT_EQ(between(at::zeros({}), -at::zeros({})), "differs in 1 of 1 elements: [] is 0 instead of -0");
  EXPECT_EQ(between(at::tensor({1, 1}).to(at::kBool), at::tensor({1, 0}).to(at::kBool)),
            "differs in 1 of 2 elements: [1] is true instead of false");

  at::Tensor found = at::arange(24, at::kLong).view({2, 3, 4});
  found.select(1, 2).add_(1);
  EXPECT_EQ(between(found, at::arange(24, at::kLong).view({2, 3, 4})),
            "differs in 8 of 24 elements: [0, 2, 0] is 9 instead of 8");
  EXPECT_EQ(between(at::tensor({1.F, std::nextafter(0.1F, 1.F)}), at::tensor({1.F, 0.1F})),
            "differs in 1 of 2 elements: [1] is 0.100000009 instead of 0.100000001");
  EXPECT_EQ(between(at::tensor({std::nextafter(0.1, 1.)}), at::tensor({0.1})),
            "differs in 1 of 1 elements: [0] is 0.10000000000000002 instead of 0.10000000000000001");
  EXPECT_EQ(between(at::tensor({1.F, 2.F}).to(at::kHalf), at::tensor({1.F, 2.5F}).to(at::kHalf)),
            "differs in 1 of 2 elements: [1] is 2 instead of 2.5");
  EXPECT_EQ(between(at::full({1}, c10::complex<double>(1, 2)), at::full({1}, c10::complex<double>(1, -2))),
            "differs in 1 of 1 elements: [0] is (1,2) instead of (1,-2)");

  const at::Tensor nan = at::full({1}, kNan), other_nan = nan.clone();
  ++*static_cast<unsigned char*>(other_nan.mutable_data_ptr());
  EXPECT_EQ(between(nan, other_nan),
            "differs in 1 of 1 elements: [0] is nan (bytes [0, 0, 192, 127]) instead of nan (bytes [1, 0, 192, 127])");
}

TEST(BitEqual, FailedExpectation_ShowsBothAndTheDifference) {
  testing::StringMatchResultListener listener;
  const testing::Matcher<at::Tensor> matcher = BitEqual(at::ones({2}));
  EXPECT_FALSE(matcher.MatchAndExplain(at::zeros({2}), &listener));
  EXPECT_EQ(listener.str(), "which differs in 2 of 2 elements: [0] is 0 instead of 1");
  std::ostringstream description, negation;
  matcher.DescribeTo(&description);
  matcher.DescribeNegationTo(&negation);
  EXPECT_EQ(description.str(), "has the bits of  1\n 1\n[ CPUFloatType{2} ]");
  EXPECT_EQ(negation.str(), "has other bits than  1\n 1\n[ CPUFloatType{2} ]");
}

TEST(BitEqual, OfManyTensors_NamesTheOneThatDiffers) {
  const std::vector<at::Tensor> expected{at::ones({1}), at::Tensor(), at::ones({3})};
  EXPECT_THAT(expected, BitEqual(expected));
  EXPECT_THAT(std::vector<at::Tensor>{}, BitEqual(std::vector<at::Tensor>{}));
  EXPECT_THAT(expected, Not(BitEqual(std::vector<at::Tensor>{at::ones({1})})));
  testing::StringMatchResultListener listener;
  const testing::Matcher<std::vector<at::Tensor>> matcher = BitEqual(expected);
  EXPECT_FALSE(matcher.MatchAndExplain({at::ones({1}), at::ones({2}), at::ones({3})}, &listener));
  EXPECT_EQ(listener.str(), "whose element #1 doesn't match, which is Float[2] instead of undefined");
}

}  // namespace
}  // namespace rehearse::test
