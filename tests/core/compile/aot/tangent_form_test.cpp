// SPDX-License-Identifier: BSD-3-Clause
// The layout of a tensor in memory, and the strides that this layout has at other sizes.
#include "compile/aot/tangent_form.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rehearse::compiler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(TangentForm, HasOrderAndExpandedDimensions) {
  const auto rows = form_of(at::zeros({2, 3, 4}));
  ASSERT_TRUE(rows);
  EXPECT_THAT(rows->dim_order, ElementsAre(0, 1, 2));
  EXPECT_THAT(rows->expanded, IsEmpty());
  const auto turned = form_of(at::zeros({4, 3, 2}).permute({2, 0, 1}));
  ASSERT_TRUE(turned);
  EXPECT_THAT(turned->dim_order, ElementsAre(1, 2, 0));
  EXPECT_THAT(strides_of(*turned, {5, 7, 3}), ElementsAre(1, 15, 5));
  const auto expanded = form_of(at::zeros({3}).expand({2, 3}));
  ASSERT_TRUE(expanded);
  EXPECT_THAT(expanded->expanded, ElementsAre(true, false));
  EXPECT_THAT(strides_of(*expanded, {9, 4}), ElementsAre(0, 1));
}

TEST(TangentForm, GapsAndOverlapsHaveNone) {
  EXPECT_FALSE(form_of(at::zeros({4, 4}).slice(1, 0, 4, 2)));
  EXPECT_FALSE(form_of(at::zeros({6}).as_strided({3, 3}, {1, 1})));
}

TEST(TangentForm, DimensionsOfOneElementAndEmptyTensorsHaveAnyForm) {
  const capture::TangentForm rows{.dim_order = {0, 1}};
  EXPECT_TRUE(has_form(at::zeros({3, 1}).as_strided({3, 1}, {1, 7}), rows));
  EXPECT_TRUE(has_form(at::zeros({0, 3}).t(), rows));
  EXPECT_FALSE(has_form(at::zeros({2, 3}).t(), rows));
  EXPECT_TRUE(form_of(at::scalar_tensor(1.0)));
}

}  // namespace
}  // namespace rehearse::compiler
