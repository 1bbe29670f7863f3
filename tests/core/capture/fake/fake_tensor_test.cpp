// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/capture/fake_tensor.h>

#include <set>
#include <sstream>
#include <thread>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "bit_equal.h"

namespace rehearse::capture::test {
namespace {

using rehearse::test::BitEqual;

TensorSpec float_spec(std::vector<c10::SymInt> sizes) {
  TensorSpec spec;
  spec.strides = contiguous_strides(sizes);
  spec.sizes = std::move(sizes);
  return spec;
}

TEST(FakeTensor, Terabyte_HasSizesAndNoMemory) {
  const at::Tensor fake = make_fake(float_spec({1 << 20, 1 << 18}));
  EXPECT_EQ(fake.sizes(), at::IntArrayRef({1 << 20, 1 << 18}));
  EXPECT_EQ(fake.strides(), at::IntArrayRef({1 << 18, 1}));
  EXPECT_EQ(fake.storage().nbytes(), std::size_t{1} << 40);
  EXPECT_TRUE(is_fake(fake));
  EXPECT_FALSE(is_fake(at::zeros({2})));
  EXPECT_FALSE(is_fake({}));
}

// The references that sizes() and strides() return must stay valid when a caller calls these functions again.
TEST(FakeTensor, SizesOfSymbols_StayWhereTheyAre) {
  const auto shapes = shapes::ShapeEnv::make();
  const at::Tensor fake = make_fake(float_spec({shapes->add_backed(5, "x.size(0)"), 3}));
  const at::IntArrayRef sizes = fake.sizes();
  const at::IntArrayRef strides = fake.strides();
  EXPECT_EQ(fake.sizes().data(), sizes.data());
  EXPECT_EQ(fake.strides().data(), strides.data());
  EXPECT_EQ(sizes, at::IntArrayRef({5, 3}));
  EXPECT_EQ(strides, at::IntArrayRef({3, 1}));
}

// The number of singular values is min(rows, columns), but no expression that infer_by_sampling() tries contains a
// minimum. So the result holds only for this number of rows.
TEST(FakeTensor, SizesThatFitNoExpression_AreGuards) {
  const auto shapes = shapes::ShapeEnv::make();
  FakeMode mode(shapes);
  const FakeMode::Scope scope(mode);
  const at::Tensor x = make_fake(float_spec({shapes->add_backed(5, "x.size(0)"), 4}));
  EXPECT_TRUE(shapes->guards().empty());
  EXPECT_EQ(at::linalg_svdvals(x).sizes(), at::IntArrayRef({4}));
  ASSERT_EQ(shapes->guards().size(), 1U);
  EXPECT_EQ(shapes->guards().front().condition.text(), "s0 == 5");
  EXPECT_TRUE(shapes->guards().front().specialises);
}

TEST(FakeTensor, Operators_GiveFakesOfEagerSizes) {
  FakeMode mode(nullptr);
  const at::Tensor weight = at::ones({3, 5}).requires_grad_();
  const auto version = weight._version();
  FakeMode::Scope scope(mode);
  const at::Tensor x = make_fake(float_spec({1 << 20, 5}));
  const at::Tensor y = at::linear(x, weight).relu();
  EXPECT_TRUE(is_fake(y));
  EXPECT_EQ(y.sizes(), at::IntArrayRef({1 << 20, 3}));
  EXPECT_TRUE(y.requires_grad());
  EXPECT_EQ(weight._version(), version);
  EXPECT_TRUE(is_fake(at::zeros({4})));
}

TEST(FakeTensor, Views_ShareTheirBasesStorage) {
  FakeMode mode(nullptr);
  FakeMode::Scope scope(mode);
  const at::Tensor x = make_fake(float_spec({4, 6}));
  for (const at::Tensor& view : x.split(4, 1)) EXPECT_TRUE(share_storage(view, x));
  EXPECT_TRUE(share_storage(x.t(), x));
  EXPECT_TRUE(share_storage(x.select(0, 1), x));
  EXPECT_EQ(x.select(0, 1).storage_offset(), 6);
  EXPECT_FALSE(share_storage(x.t().contiguous(), x));
  EXPECT_FALSE(share_storage(x.relu(), x));
}

TEST(FakeTensor, InPlace_GivesTheArgumentItself) {
  FakeMode mode(nullptr);
  FakeMode::Scope scope(mode);
  at::Tensor x = make_fake(float_spec({4, 6}));
  const auto id = fake_id(x);
  EXPECT_TRUE(x.add_(1).is_same(x));
  EXPECT_EQ(fake_id(x), id);
  EXPECT_NE(fake_id(x.add(1)), id);
  EXPECT_EQ(fake_id(x.tensor_data()), id);
  x.t_();
  EXPECT_EQ(x.sizes(), at::IntArrayRef({6, 4}));
  EXPECT_EQ(x.strides(), at::IntArrayRef({1, 6}));
  EXPECT_THROW(x.add_(at::ones({7, 7})), c10::Error);
}

TEST(FakeTensor, FakesOfTwoThreads_AreNotTakenForEachOther) {
  std::set<std::uint64_t> ids;
  for (int thread = 0; thread < 2; ++thread) {
    std::thread([&] {
      for (int i = 0; i < 3; ++i) ids.insert(fake_id(make_fake(float_spec({2}))));
    }).join();
  }
  EXPECT_EQ(ids.size(), 6U);
}

TEST(FakeTensor, SameRealTensor_IsTheSameFake) {
  FakeMode mode(nullptr);
  const at::Tensor base = at::ones({2, 3});
  const at::Tensor row = base[1];
  EXPECT_EQ(fake_id(mode.fake_of(base)), fake_id(mode.fake_of(base)));
  EXPECT_TRUE(share_storage(mode.fake_of(row), mode.fake_of(base)));
  EXPECT_EQ(mode.fake_of(row).storage_offset(), 3);
}

TEST(FakeTensor, WrappedNumber_StaysOne) {
  FakeMode mode(nullptr);
  FakeMode::Scope scope(mode);
  const at::Tensor x = make_fake(float_spec({4})).to(at::kHalf);
  EXPECT_EQ((x * 2.5).scalar_type(), at::kHalf);
  EXPECT_EQ(at::where(x > 0, x, 1.0).scalar_type(), at::kHalf);
}

TEST(FakeTensor, Autocast_CastsAsInEager) {
  FakeMode mode(nullptr);
  FakeMode::Scope scope(mode);
  const at::Tensor x = make_fake(float_spec({4, 6})), weight = make_fake(float_spec({3, 6}));
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const at::Tensor half = at::linear(x, weight);
  const at::Tensor full = at::mse_loss(half, half);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  EXPECT_EQ(half.scalar_type(), at::kBFloat16);
  EXPECT_EQ(full.scalar_type(), at::kFloat);
}

TEST(FakeTensor, Out_IsResizedAsInEager) {
  FakeMode mode(nullptr);
  FakeMode::Scope scope(mode);
  const at::Tensor x = make_fake(float_spec({4, 6}));
  at::Tensor out = make_fake(float_spec({0}));
  EXPECT_TRUE(at::add_out(out, x, x).is_same(out));
  EXPECT_EQ(out.sizes(), at::IntArrayRef({4, 6}));
}

TEST(FakeTensor, ListsOfTensors_AreInferredEach) {
  FakeMode mode(nullptr);
  FakeMode::Scope scope(mode);
  const std::vector<at::Tensor> parameters{make_fake(float_spec({4, 6})), make_fake(float_spec({3}))};
  const auto halves = at::_foreach_mul(parameters, 0.5);
  ASSERT_EQ(halves.size(), 2U);
  EXPECT_EQ(halves[0].sizes(), at::IntArrayRef({4, 6}));
  EXPECT_EQ(halves[1].sizes(), at::IntArrayRef({3}));
  at::_foreach_add_(parameters, halves);
  EXPECT_EQ(mode.inference_counts().sampled, 0U);
}

TEST(FakeTensor, Listener_HearsOfEachOperatorAndGivesTheFakes) {
  struct Listener : FakeListener {
    at::Tensor fake_of(const at::Tensor& real) override {
      ++asked;
      return make_fake(spec_of(real));
    }
    void on_operator(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                     c10::ArrayRef<c10::IValue> results) override {
      heard.push_back(op.operator_name().name);
      for (const c10::IValue& value : arguments) EXPECT_TRUE(!value.isTensor() || is_fake(value.toTensor()));
      for (const c10::IValue& value : results) EXPECT_TRUE(is_fake(value.toTensor()));
    }
    int asked = 0;
    std::vector<std::string> heard;
  } listener;
  FakeMode mode(nullptr, &listener);
  at::Tensor real = at::ones({3, 6});
  {
    FakeMode::Scope scope(mode);
    at::linear(make_fake(float_spec({4, 6})), real).relu_();
    EXPECT_TRUE(real.mul_(2).is_same(real));
  }
  EXPECT_EQ(listener.heard, (std::vector<std::string>{"aten::t", "aten::mm", "aten::relu_", "aten::mul_"}));
  EXPECT_EQ(listener.asked, 2);
  EXPECT_THAT(real, BitEqual(at::ones({3, 6})));
}

TEST(FakeTensor, LayoutWasRead_OnceASizeIsRead) {
  FakeMode mode(nullptr);
  FakeMode::Scope scope(mode);
  const at::Tensor x = make_fake(float_spec({2, 3}));
  EXPECT_EQ(meta_of(x).sizes.size(), 2U);
  EXPECT_EQ(spec_of(x).sizes.size(), 2U);
  EXPECT_EQ(x.dim(), 2);
  EXPECT_EQ(x.scalar_type(), at::kFloat);
  EXPECT_FALSE(layout_was_read(x));
  EXPECT_EQ(x.size(1), 3);
  EXPECT_TRUE(layout_was_read(x));
  const at::Tensor y = make_fake(float_spec({2, 3}));
  EXPECT_TRUE(y.is_contiguous());
  EXPECT_TRUE(layout_was_read(y));
}

TEST(FakeTensorData, Reads_AreTypedErrors) {
  FakeMode mode(nullptr);
  FakeMode::Scope scope(mode);
  const at::Tensor x = make_fake(float_spec({1}));
  EXPECT_THROW(static_cast<void>(x.item<float>()), DataDependentRead);
  EXPECT_THROW(at::is_nonzero(x), DataDependentRead);
  EXPECT_THROW(at::equal(x, x + 1), DataDependentRead);
  EXPECT_THROW(at::nonzero(x), DataDependentRead);
  EXPECT_THROW(at::equal(x, x), DataDependentRead);  // a NaN differs from itself
  const at::Tensor number = x.to(at::kLong);
  EXPECT_TRUE(at::equal(number, number));
  EXPECT_FALSE(at::equal(x, at::zeros({2})));
}

TEST(FakeTensorData, Memory_IsATypedError) {
  FakeMode mode(nullptr);
  FakeMode::Scope scope(mode);
  const at::Tensor x = make_fake(float_spec({2}));
  EXPECT_THROW(with_typed_errors([&] { x.data_ptr<float>(); }), DataAccess);
  EXPECT_THROW(with_typed_errors([&] { x.const_data_ptr(); }), DataAccess);
  EXPECT_THROW(with_typed_errors([&] { x.accessor<float, 1>(); }), DataAccess);
  EXPECT_THROW(with_typed_errors([&] { at::tensor({1.0, 2.0}); }), DataAccess);
  std::ostringstream out;
  EXPECT_THROW(with_typed_errors([&] { out << x; }), DataAccess);
  EXPECT_THROW(with_typed_errors([] { throw std::runtime_error("another"); }), std::runtime_error);
}

TEST(FakeTensorData, OutsideOfItsMode_IsATypedError) {
  FakeMode mode(nullptr);
  at::Tensor x;
  {
    FakeMode::Scope scope(mode);
    x = make_fake(float_spec({2}));
  }
  EXPECT_EQ(FakeMode::current(), nullptr);
  EXPECT_THROW(x + 1, FakeOutsideMode);
  EXPECT_EQ(at::ones({2}).sum().item<float>(), 2.0F);
}

TEST(FakeTensorData, Pause_ComputesInsideOfAScope) {
  FakeMode mode(nullptr);
  FakeMode::Scope scope(mode);
  const FakeMode::Pause pause;
  EXPECT_EQ(at::ones({2}).sum().item<float>(), 2.0F);
}

}  // namespace
}  // namespace rehearse::capture::test
