// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/ivalue_inl.h>
#include <gmock/gmock.h>

#include <rehearse/parallel/output_tensors.h>

namespace user {

struct Outputs {
  at::Tensor logits;
  std::vector<at::Tensor> hidden;
  int step = 0;
};
template <class Visit>
void visit_tensors(Outputs& outputs, Visit&& visit) {
  visit(outputs.logits);
  visit(outputs.hidden);
}

struct Opaque {
  at::Tensor not_looked_at;
};

}  // namespace user

namespace {

using rehearse::parallel::for_each_tensor;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The number of elements identifies each tensor.
at::Tensor sized(std::int64_t size) { return at::zeros({size}); }

template <class T>
std::vector<std::int64_t> sizes_in(T& value) {
  std::vector<std::int64_t> sizes;
  for_each_tensor(value, [&](at::Tensor& tensor) { sizes.push_back(tensor.numel()); });
  return sizes;
}

TEST(OutputTensors, Containers_VisitedInOrderToAnyDepth) {
  auto tensor = sized(3);
  EXPECT_THAT(sizes_in(tensor), ElementsAre(3));

  std::vector<std::pair<at::Tensor, int>> pairs = {{sized(1), 7}, {sized(2), 8}};
  EXPECT_THAT(sizes_in(pairs), ElementsAre(1, 2));

  std::tuple<at::Tensor, std::tuple<at::Tensor, at::Tensor>> lstm = {sized(1), {sized(2), sized(3)}};
  EXPECT_THAT(sizes_in(lstm), ElementsAre(1, 2, 3));

  std::map<std::string, std::optional<at::Tensor>> named = {{"b", sized(2)}, {"a", sized(1)}, {"c", std::nullopt}};
  EXPECT_THAT(sizes_in(named), ElementsAre(1, 2));

  std::unordered_map<int, std::list<at::Tensor>> lists;
  lists[0] = {sized(4), sized(5)};
  EXPECT_THAT(sizes_in(lists), ElementsAre(4, 5));

  std::array<std::variant<int, at::Tensor>, 3> variants = {1, sized(6), sized(7)};
  EXPECT_THAT(sizes_in(variants), ElementsAre(6, 7));
}

TEST(OutputTensors, TypesWithoutTensors_Skipped) {
  std::string text = "text";
  std::vector<bool> flags = {true, false};
  std::vector<double> numbers = {1.0};
  user::Opaque opaque{sized(1)};
  auto shared = std::make_shared<int>(3);
  EXPECT_THAT(sizes_in(text), IsEmpty());
  EXPECT_THAT(sizes_in(flags), IsEmpty());
  EXPECT_THAT(sizes_in(numbers), IsEmpty());
  EXPECT_THAT(sizes_in(opaque), IsEmpty());
  EXPECT_THAT(sizes_in(shared), IsEmpty());
}

TEST(OutputTensors, UserStruct_VisitedThroughItsFunction) {
  std::vector<user::Outputs> outputs = {{sized(1), {sized(2), sized(3)}}, {sized(4), {}}};
  EXPECT_THAT(sizes_in(outputs), ElementsAre(1, 2, 3, 4));
}

TEST(OutputTensors, IValue_VisitedAndRebuiltWithoutTouchingSharedContainers) {
  c10::Dict<std::string, at::Tensor> dict;
  dict.insert("x", sized(4));
  c10::IValue value =
      c10::ivalue::Tuple::create({c10::IValue(sized(1)), c10::IValue(std::vector<at::Tensor>{sized(2), sized(3)}),
                                  c10::IValue(dict), c10::IValue(5)});
  const c10::IValue before = value;
  EXPECT_THAT(sizes_in(value), ElementsAre(1, 2, 3, 4));

  for_each_tensor(value, [](at::Tensor& tensor) { tensor = at::zeros({tensor.numel() * 10}); });
  EXPECT_THAT(sizes_in(value), ElementsAre(10, 20, 30, 40));
  EXPECT_EQ(value.toTupleRef().elements()[3].toInt(), 5);
  EXPECT_TRUE(value.toTupleRef().elements()[1].isTensorList());
  EXPECT_EQ(dict.at("x").numel(), 4);
  EXPECT_EQ(before.toTupleRef().elements()[0].toTensor().numel(), 1);
}

TEST(OutputTensors, Visit_MayPutOthersInPlace) {
  std::pair<at::Tensor, std::vector<at::Tensor>> output = {sized(1), {sized(2)}};
  for_each_tensor(output, [](at::Tensor& tensor) { tensor = at::zeros({tensor.numel() + 10}); });
  EXPECT_THAT(sizes_in(output), ElementsAre(11, 12));
}

}  // namespace
