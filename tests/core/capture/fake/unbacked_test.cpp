// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/shapes/shape_env.h>
#include <rehearse_internal/shapes/sym_node.h>

// Sizes that depend on data, such as the number of rows of nonzero()'s result. Fakes have unbacked symbols for them.
namespace rehearse::capture::test {
namespace {

using testing::ElementsAre;

std::vector<std::string> texts(c10::SymIntArrayRef values) {
  std::vector<std::string> all;
  for (const c10::SymInt& value : values) all.push_back(shapes::text_of(value));
  return all;
}

class Unbacked : public testing::Test {
 protected:
  at::Tensor fake(std::vector<c10::SymInt> sizes, c10::ScalarType dtype = at::kFloat) {
    TensorSpec spec;
    spec.strides = contiguous_strides(sizes);
    spec.sizes = std::move(sizes);
    spec.dtype = dtype;
    return make_fake(spec);
  }

  const std::shared_ptr<shapes::ShapeEnv> shapes_ = shapes::ShapeEnv::make();
  FakeMode mode_{shapes_};
  const FakeMode::Scope scope_{mode_};
};

TEST_F(Unbacked, Nonzero_BringsASymbolThatOperatorsCarry) {
  const at::Tensor places = at::nonzero(fake({6, 4}));
  EXPECT_THAT(texts(places.sym_sizes()), ElementsAre("u0", "2"));
  EXPECT_THAT(texts(places.sym_strides()), ElementsAre("1", "u0"));
  EXPECT_EQ(places.scalar_type(), at::kLong);
  const at::Tensor rows = fake({6, 8}).index_select(0, places.select(1, 0));
  EXPECT_THAT(texts(rows.sym_sizes()), ElementsAre("u0", "8"));
  const at::Tensor out = at::linear(rows.relu() * 2 + rows, fake({3, 8}), fake({3}));
  EXPECT_THAT(texts(out.sym_sizes()), ElementsAre("u0", "3"));
  EXPECT_THAT(texts(out.sum(0).sym_sizes()), ElementsAre("3"));
  EXPECT_TRUE(shapes_->guards().empty());
}

// nonzero() returns a column-major tensor, and an operator that iterates over its elements keeps that layout. Before
// LibTorch chooses the strides, it asks whether the number of rows, u0, is larger than 1. The answer must be yes, as
// for a tensor with several rows.
TEST_F(Unbacked, StridesOfAResultFollowTheColumnsOfNonzero) {
  const at::Tensor places = at::nonzero(fake({6, 4}));
  EXPECT_THAT(texts((places + 1).sym_strides()), ElementsAre("1", "u0"));
  const c10::List<std::optional<at::Tensor>> rows(std::vector<std::optional<at::Tensor>>{places});
  const at::Tensor picked = at::index(fake({6, 4}), rows);
  EXPECT_THAT(texts(picked.sym_sizes()), ElementsAre("u0", "2", "4"));
  EXPECT_THAT(texts(picked.sym_strides()), ElementsAre("4", "4*u0", "1"));
  EXPECT_TRUE(shapes_->guards().empty());
}

TEST_F(Unbacked, Masks_SelectAsMany) {
  const at::Tensor x = fake({6, 4});
  EXPECT_THAT(texts(x.masked_select(x > 0).sym_sizes()), ElementsAre("u0"));
  const c10::List<std::optional<at::Tensor>> mask(std::vector<std::optional<at::Tensor>>{x.select(1, 0) > 0});
  EXPECT_THAT(texts(at::index(x, mask).sym_sizes()), ElementsAre("u1", "4"));
  const c10::List<std::optional<at::Tensor>> of_all(std::vector<std::optional<at::Tensor>>{x > 0});
  EXPECT_THAT(texts(at::index(x, of_all).sym_sizes()), ElementsAre("u2"));
  const auto unique = at::_unique2(x, true, true, false);
  EXPECT_THAT(texts(std::get<0>(unique).sym_sizes()), ElementsAre("u3"));
  EXPECT_THAT(texts(std::get<1>(unique).sym_sizes()), ElementsAre("6", "4"));
}

TEST_F(Unbacked, OlderUnique_HasAsManyAsTheNewer) {
  const auto unique = at::_unique(fake({6, 4}), true, true);
  EXPECT_THAT(texts(std::get<0>(unique).sym_sizes()), ElementsAre("u0"));
  EXPECT_THAT(texts(std::get<1>(unique).sym_sizes()), ElementsAre("6", "4"));
  const auto values = at::_unique(fake({6, 4}));
  EXPECT_THAT(texts(std::get<0>(values).sym_sizes()), ElementsAre("u1"));
  EXPECT_THAT(texts(std::get<1>(values).sym_sizes()), ElementsAre("0"));
}

// These operators have no rule. Samples with other numbers show that the sizes of their results depend on data.
TEST_F(Unbacked, OutOverloads_AreErrors) {
  at::Tensor x = fake({5}, at::kLong), values = fake({0}, at::kLong), places = fake({0}, at::kLong);
  at::Tensor counts = fake({0}, at::kLong);
  EXPECT_THROW(at::_unique_out(values, places, x, true, true), DataDependentRead);
  EXPECT_THROW(at::_unique2_out(values, places, counts, x, true, true, true), DataDependentRead);
  EXPECT_THROW(at::unique_consecutive_out(values, places, counts, x), DataDependentRead);
  EXPECT_THROW(at::unique_dim_out(values, places, counts, x, 0), DataDependentRead);
  EXPECT_THROW(at::unique_dim_consecutive_out(values, places, counts, x, 0), DataDependentRead);
  EXPECT_THROW(at::bincount_out(values, x), DataDependentRead);
  EXPECT_THROW(at::repeat_interleave_out(values, x), DataDependentRead);
  const at::Tensor sorted = at::searchsorted_out(places, fake({4}, at::kLong), x);  // its size does not depend on data
  EXPECT_THAT(texts(sorted.sym_sizes()), ElementsAre("5"));
}

TEST_F(Unbacked, Reads_AreSymbolsOnlyWhereAskedFor) {
  const at::Tensor count = fake({}, at::kLong);
  EXPECT_THROW(count.item(), DataDependentRead);
  {
    const FakeMode::SymbolicReads reads(mode_);
    const c10::SymInt size = count.item().toSymInt();
    EXPECT_EQ(shapes::text_of(size), "u0");
    EXPECT_THAT(texts(at::zeros_symint({size, 2}).sym_sizes()), ElementsAre("u0", "2"));
    EXPECT_THROW(fake({}).item(), DataDependentRead);  // not an integer
  }
  EXPECT_THROW(count.item(), DataDependentRead);
}

TEST_F(Unbacked, WithoutShapes_AreErrors) {
  FakeMode mode(nullptr);
  const FakeMode::Scope scope(mode);
  EXPECT_THROW(at::nonzero(fake({3})), DataDependentRead);
}

TEST_F(Unbacked, PlainSizesOfThem_AreErrors) {
  const at::Tensor places = at::nonzero(fake({6}));
  EXPECT_THROW(places.size(0), shapes::DataDependentError);
}

}  // namespace
}  // namespace rehearse::capture::test
