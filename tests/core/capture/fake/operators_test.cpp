// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse_internal/shapes/sym_node.h>
#include "bit_equal.h"
#include "operator_case.h"

// The reference is LibTorch itself: a fake result must have the properties of the real operator's result.
namespace rehearse::capture::test {
namespace {

using rehearse::test::BitEqual;

constexpr Sizes kHint{6, 10};
constexpr Sizes kOthers[] = {{9, 4}, {2, 3}, {5, 16}};

// The operators whose results may come from infer_by_sampling(). The results of all other operators of the cases must
// be inferred without it: by a rule, by broadcasting or by a Meta kernel.
const std::set<std::string> kSampled = {
    "aten::_adaptive_avg_pool2d",
    "aten::_adaptive_avg_pool2d_backward",
    "aten::avg_pool2d",
    "aten::avg_pool2d_backward",
    "aten::log_sigmoid_backward",
    "aten::log_sigmoid_forward",
    "aten::max_pool2d_with_indices",
    "aten::max_pool2d_with_indices_backward",
};

// The value of a symbolic size in a call with the given sizes.
std::int64_t at_sizes(const c10::SymInt& value, const shapes::ShapeEnv& shapes, Sizes sizes) {
  const shapes::ValueOf of = [&](const std::string& name) -> std::optional<std::int64_t> {
    for (const shapes::BackedSymbol& symbol : shapes.backed()) {
      if (symbol.name == name) return symbol.hint == kHint.n ? sizes.n : sizes.m;
    }
    return std::nullopt;
  };
  return shapes::expr_of(value).evaluate(of).value();
}

using Evaluate = std::function<std::int64_t(const c10::SymInt&)>;

std::vector<std::int64_t> evaluated(c10::SymIntArrayRef values, const Evaluate& evaluate) {
  std::vector<std::int64_t> result;
  for (const c10::SymInt& value : values) result.push_back(evaluate(value));
  return result;
}

void expect_same(const at::Tensor& real, const at::Tensor& fake, const Evaluate& evaluate) {
  ASSERT_EQ(real.defined(), fake.defined());
  if (!real.defined()) return;
  EXPECT_TRUE(is_fake(fake));
  EXPECT_EQ(evaluated(fake.sym_sizes(), evaluate), real.sizes().vec());
  EXPECT_EQ(evaluated(fake.sym_strides(), evaluate), real.strides().vec()) << real.sizes();
  EXPECT_EQ(evaluate(fake.sym_storage_offset()), real.storage_offset());
  EXPECT_EQ(fake.scalar_type(), real.scalar_type());
  EXPECT_EQ(fake.device(), real.device());
  EXPECT_EQ(fake.requires_grad(), real.requires_grad());
  EXPECT_EQ(fake.is_conj(), real.is_conj());
  EXPECT_EQ(fake.unsafeGetTensorImpl()->is_wrapped_number(), real.unsafeGetTensorImpl()->is_wrapped_number());
}

void expect_same(const Tensors& real, const Tensors& fake, const Evaluate& evaluate) {
  ASSERT_EQ(real.size(), fake.size());
  for (std::size_t i = 0; i < real.size(); ++i) {
    SCOPED_TRACE("result " + std::to_string(i));
    expect_same(real[i], fake[i], evaluate);
  }
}

// For each result, whether it shares a storage with each input and with each earlier result.
std::vector<bool> sharing(const Tensors& inputs, const Tensors& results) {
  std::vector<bool> shares;
  Tensors before = inputs;
  for (const at::Tensor& result : results) {
    if (!result.defined()) continue;
    for (const at::Tensor& other : before) shares.push_back(share_storage(result, other));
    before.push_back(result);
  }
  return shares;
}

void expect_same(const Tensors& real_in, const Results& real, const Tensors& fake_in, const Results& fake,
                 const Evaluate& evaluate) {
  expect_same(real.forward, fake.forward, evaluate);
  EXPECT_EQ(sharing(real_in, real.forward), sharing(fake_in, fake.forward));
  SCOPED_TRACE("gradients");
  expect_same(real.gradients, fake.gradients, evaluate);
}

class Operators : public testing::TestWithParam<OperatorCase> {};

TEST_P(Operators, StaticSizes_GiveWhatEagerGives) {
  for (const Sizes sizes : {kHint, Sizes{1, 3}, Sizes{2, 1}}) {
    SCOPED_TRACE(std::to_string(sizes.n) + "x" + std::to_string(sizes.m));
    const Tensors real_in = real_inputs(GetParam(), sizes);
    const Results real = run(GetParam(), real_in);
    const at::Tensor state = at::detail::getDefaultCPUGenerator().get_state();
    FakeMode mode(nullptr);
    Tensors fake_in;
    Results fake;
    {
      const FakeMode::Scope scope(mode);
      fake_in = fake_inputs(GetParam(), sizes, nullptr);
      fake = run(GetParam(), fake_in);
    }
    EXPECT_THAT(state, BitEqual(at::detail::getDefaultCPUGenerator().get_state()));
    expect_same(real_in, real, fake_in, fake, [](const c10::SymInt& value) { return value.maybe_as_int().value(); });
  }
}

// Leaves out operators that refuse empty tensors. For all others, fakes must have the properties of the real results.
TEST_P(Operators, EmptyTensors_GiveWhatEagerGives) {
  if (GetParam().name == "native_dropout") GTEST_SKIP() << "gives its argument, against its schema";
  for (const Sizes sizes : {Sizes{0, 3}, Sizes{3, 0}}) {
    SCOPED_TRACE(std::to_string(sizes.n) + "x" + std::to_string(sizes.m));
    Tensors real_in;
    Results real;
    try {
      real_in = real_inputs(GetParam(), sizes);
      real = run(GetParam(), real_in);
    } catch (const std::exception&) {
      continue;
    }
    FakeMode mode(nullptr);
    const FakeMode::Scope scope(mode);
    const Tensors fake_in = fake_inputs(GetParam(), sizes, nullptr);
    const Results fake = run(GetParam(), fake_in);
    expect_same(real_in, real, fake_in, fake, [](const c10::SymInt& value) { return value.maybe_as_int().value(); });
  }
}

TEST_P(Operators, SymbolicSizes_GiveWhatEagerGivesAtOthers) {
  const auto shapes = shapes::ShapeEnv::make();
  FakeMode mode(shapes);
  const at::Tensor state = at::detail::getDefaultCPUGenerator().get_state();
  Tensors fake_in;
  Results fake;
  {
    const FakeMode::Scope scope(mode);
    fake_in = fake_inputs(GetParam(), kHint, shapes);
    fake = run(GetParam(), fake_in);
  }
  EXPECT_THAT(state, BitEqual(at::detail::getDefaultCPUGenerator().get_state()));
  for (const shapes::Guard& guard : shapes->guards()) EXPECT_FALSE(guard.specialises) << shapes->text();
  for (const auto& [name, count] : mode.inference_counts().sampled_operators) {
    EXPECT_TRUE(kSampled.contains(name)) << name << " has lost its rule";
  }
  std::vector<Sizes> all(std::begin(kOthers), std::end(kOthers));
  all.push_back(kHint);
  for (const Sizes sizes : all) {
    SCOPED_TRACE(std::to_string(sizes.n) + "x" + std::to_string(sizes.m));
    const Tensors real_in = real_inputs(GetParam(), sizes);
    const Results real = run(GetParam(), real_in);
    expect_same(real_in, real, fake_in, fake,
                [&](const c10::SymInt& value) { return at_sizes(value, *shapes, sizes); });
  }
}

std::string name_of(const testing::TestParamInfo<OperatorCase>& info) {
  std::string name = info.param.name;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Pointwise, Operators, testing::ValuesIn(pointwise_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Views, Operators, testing::ValuesIn(view_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Reductions, Operators, testing::ValuesIn(reduction_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Matrices, Operators, testing::ValuesIn(matrix_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Layers, Operators, testing::ValuesIn(layer_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Factories, Operators, testing::ValuesIn(factory_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Indices, Operators, testing::ValuesIn(index_cases()), name_of);

}  // namespace
}  // namespace rehearse::capture::test
