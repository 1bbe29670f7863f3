// SPDX-License-Identifier: BSD-3-Clause
// Mixed precision casts floating-point tensors in the arguments of forward(). The caller's own tensors stay unchanged.
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/ivalue_inl.h>
#include <gtest/gtest.h>

#include <rehearse/parallel/cast_inputs.h>

namespace user {

struct Batch {
  at::Tensor x;
  int step = 0;
};
template <class Visit>
void visit_tensors(Batch& batch, Visit&& visit) {
  visit(batch.x);
}
struct Closed {
  at::Tensor not_looked_at;
};

}  // namespace user

namespace {

using rehearse::parallel::holds_tensors;
using rehearse::parallel::with_cast_inputs;

static_assert(holds_tensors<at::Tensor>() && holds_tensors<c10::IValue>() && holds_tensors<user::Batch>());
static_assert(holds_tensors<std::vector<std::map<int, std::optional<at::Tensor>>>>());
static_assert(holds_tensors<std::variant<int, at::Tensor>>() && holds_tensors<std::pair<int, at::Tensor>>());
static_assert(!holds_tensors<int>() && !holds_tensors<std::string>() && !holds_tensors<user::Closed>());
static_assert(!holds_tensors<std::span<at::Tensor>>() && !holds_tensors<std::pair<int, double>>());

TEST(CastInputs, FloatingPointTensors_AreCopiesInTheOtherDtype) {
  user::Batch batch{at::ones({2}, at::kDouble), 3};
  const std::vector<at::Tensor> list = {at::ones({2}), at::ones({2}, at::kLong), at::Tensor()};
  const auto half = at::ones({2}, at::kHalf);
  with_cast_inputs(
      at::kHalf,
      [&](user::Batch& cast, const std::vector<at::Tensor>& casts, const at::Tensor& same, at::Tensor&& moved) {
        EXPECT_EQ(cast.x.scalar_type(), at::kHalf);
        EXPECT_EQ(cast.step, 3);
        EXPECT_EQ(casts[0].scalar_type(), at::kHalf);
        EXPECT_EQ(casts[1].scalar_type(), at::kLong);
        EXPECT_FALSE(casts[2].defined());
        EXPECT_TRUE(same.is_same(half));
        EXPECT_EQ(moved.scalar_type(), at::kHalf);
      },
      batch, list, half, at::ones({1}));
  EXPECT_EQ(batch.x.scalar_type(), at::kDouble);
  EXPECT_EQ(list[0].scalar_type(), at::kFloat);
}

TEST(CastInputs, OtherArguments_AreTheCallersOwn) {
  std::string text = "before";
  user::Closed opaque{at::ones({1})};
  std::vector<at::Tensor> owned = {at::ones({1})};
  auto unique = std::make_unique<int>(7);
  const int result = with_cast_inputs(
      at::kHalf,
      [&](std::string& own, user::Closed& same, std::span<at::Tensor> view, std::unique_ptr<int> moved) {
        own = "after";
        EXPECT_EQ(&same, &opaque);
        EXPECT_EQ(view[0].scalar_type(), at::kFloat);
        return *moved;
      },
      text, opaque, std::span<at::Tensor>(owned), std::move(unique));
  EXPECT_EQ(text, "after");
  EXPECT_EQ(result, 7);
}

}  // namespace
