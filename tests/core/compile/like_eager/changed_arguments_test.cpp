// SPDX-License-Identifier: BSD-3-Clause
// Functions take numbers, texts, containers and structs by reference and change them. Each compiled call changes these
// arguments as eager mode does. The tests also cover which overload is called.
#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"

namespace changed_arguments {

struct Batch {
  at::Tensor ids;
  std::int64_t uses = 0;
  std::vector<std::int64_t> sizes = {};
};

template <class Visit>
void visit_fields(Batch& batch, Visit&& visit) {
  visit("ids", batch.ids);
  visit("uses", batch.uses);
  visit("sizes", batch.sizes);
}

}  // namespace changed_arguments

namespace rehearse::compiler::changed_arguments_test {
namespace {

using changed_arguments::Batch;
using rehearse::test::BitEqual;
using testing::HasSubstr;

struct Everything {
  std::int64_t number = 3;
  double real = 0.5;
  bool flag = false;
  std::string text = "a";
  std::vector<std::int64_t> list = {1, 2};
  std::array<int, 2> pair = {4, 5};
  std::optional<int> maybe = {};
  std::map<std::string, double> named = {{"x", 1.0}};
  Batch batch = {at::ones({2})};

  friend bool operator==(const Everything& a, const Everything& b) {
    const auto tied = [](const Everything& e) {
      return std::tie(e.number, e.real, e.flag, e.text, e.list, e.pair, e.maybe, e.named, e.batch.uses, e.batch.sizes);
    };
    return tied(a) == tied(b) && a.batch.ids.equal(b.batch.ids);
  }
};

using List = std::vector<std::int64_t>;
using Named = std::map<std::string, double>;

at::Tensor change_all(const at::Tensor& x, std::int64_t& number, double& real, bool& flag, std::string& text,
                      List& list, std::array<int, 2>& pair, std::optional<int>& maybe, Named& named, Batch& batch) {
  const at::Tensor y = x * number + real;
  number += 2;
  real *= 1.5;
  flag = !flag;
  text += "b";
  list.push_back(number);
  pair[1] = 9;
  maybe = maybe ? std::nullopt : std::optional(7);
  named["y"] = 2.0;
  ++batch.uses;
  return y + batch.ids;
}

TEST(ChangedArguments, OfEveryKind) {
  for (const char* const backend : {"aot_eager", "eager"}) {
    auto compiled = compile(change_all, {.backend = backend});
    Everything mine, eagers;
    const auto call = [](auto& function, const at::Tensor& x, Everything& e) {
      return function(x, e.number, e.real, e.flag, e.text, e.list, e.pair, e.maybe, e.named, e.batch);
    };
    for (int i = 0; i < 4; ++i) {
      const at::Tensor x = at::full({2}, i);
      EXPECT_THAT(call(compiled, x, mine), BitEqual(call(change_all, x, eagers))) << i;
      EXPECT_TRUE(mine == eagers) << i;
      if (i == 1) mine = eagers = Everything();
    }
    EXPECT_EQ(compiled.stats().compiles, 2);
    EXPECT_EQ(compiled.stats().hits, 2);
  }
}

TEST(ChangedArguments, OnEachBranchBehindARead) {
  const auto function = [](const at::Tensor& x, std::int64_t& positives, std::string& last) {
    if ((x.sum() > 0).item<bool>()) {
      ++positives;
      last = "up";
      return x * 2;
    }
    last = "down";
    return x - 1;
  };
  auto compiled = compile(function);
  for (int i = 0; i < 8; ++i) {
    std::int64_t mine = 5, eagers = 5;
    std::string my_text, eager_text;
    const at::Tensor x = at::full({2}, i % 3 == 0 ? -1.0 : 1.0);
    EXPECT_THAT(compiled(x, mine, my_text), BitEqual(function(x, eagers, eager_text)));
    EXPECT_EQ(mine, eagers);
    EXPECT_EQ(my_text, eager_text);
  }
  EXPECT_EQ(compiled.stats().eager_calls, 0);
}

TEST(ChangedArguments, WhereTheFunctionThrows) {
  const auto function = [](const at::Tensor& x, int& calls) {
    ++calls;
    if (x.size(0) == 3) throw std::runtime_error("three");
    return x * 2;
  };
  auto compiled = compile(function);
  int calls = 0;
  EXPECT_THROW(compiled(at::ones({3}), calls), std::runtime_error);
  EXPECT_EQ(calls, 1);
  compiled(at::ones({2}), calls);
  EXPECT_EQ(calls, 2);
  EXPECT_THROW(compiled(at::ones({3}), calls), std::runtime_error);
  EXPECT_EQ(calls, 3);
}

// Code that changes requires_grad of a tensor that is no argument cannot be captured so far, so nobody knows the value
// of the tensor that the code has appended.
TEST(ChangedArguments, WhereTheFunctionThrows_TheErrorIsThatOfTheFunction) {
  const at::Tensor weight = at::ones({2});
  const auto function = [&weight](std::vector<at::Tensor>& results, int& calls, const at::Tensor& x) {
    ++calls;
    results.push_back(x * weight);
    weight.set_requires_grad(true);
    throw std::runtime_error("stop");
  };
  auto compiled = compile(function);
  std::vector<at::Tensor> results;
  int calls = 0;
  EXPECT_THROW(compiled(results, calls, at::ones({2})), std::runtime_error);
  EXPECT_EQ(calls, 1);
}

TEST(ChangedArguments, OfAFunctionThatReturnsNothing) {
  const auto function = [](at::Tensor& x, int& calls) {
    x.add_(1);
    ++calls;
  };
  auto compiled = compile(function);
  at::Tensor x = at::zeros({2});
  for (int i = 1; i < 4; ++i) {
    int calls = 0;
    compiled(x, calls);
    EXPECT_EQ(calls, 1);
    EXPECT_THAT(x, BitEqual(at::full({2}, static_cast<float>(i))));
  }
}

// If code computes a plain number from a dynamic size, a guard fixes the size, so the number is right for each size.
TEST(ChangedArguments, NumbersOfSizes) {
  const auto function = [](const at::Tensor& x, std::int64_t& rows) {
    rows = x.size(0) * 2;
    return x.exp();
  };
  auto compiled = compile(function, {.dynamic = true});
  for (const std::int64_t size : {2, 3, 5, 3, 2}) {
    std::int64_t rows = 0;
    compiled(at::ones({size}), rows);
    EXPECT_EQ(rows, 2 * size);
  }
}

// Code with an effect that no later call could repeat runs in eager mode.
TEST(ChangedArguments, RefusedWhereASizeOrATensorIsLeft) {
  {
    auto compiled = compile(
        [](const at::Tensor& x, c10::SymInt& rows) {
          rows = x.sym_size(0) + 1;
          return x * 2;
        },
        {.dynamic = true});
    for (const std::int64_t size : {2, 3, 4}) {
      c10::SymInt rows = 0;
      compiled(at::ones({size}), rows);
      EXPECT_EQ(rows.guard_int(__FILE__, __LINE__), size + 1);
    }
    EXPECT_THAT(compiled.explain().refusal, HasSubstr("argument arg1"));
  }
  auto compiled = compile([](const at::Tensor& x, std::vector<at::Tensor>& kept) {
    kept.push_back(x * 2);
    return x;
  });
  std::vector<at::Tensor> kept;
  for (int i = 1; i < 4; ++i) {
    compiled(at::full({1}, i), kept);
    ASSERT_EQ(kept.size(), static_cast<std::size_t>(i));
    EXPECT_EQ(kept.back().item<int>(), 2 * i);
  }
  EXPECT_THAT(compiled.explain().refusal, HasSubstr("argument arg1"));
}

struct Overloaded {
  std::string operator()(at::Tensor&) const { return "lvalue"; }
  std::string operator()(const at::Tensor&) const { return "const"; }
  std::string operator()(at::Tensor&&) const { return "temporary"; }
};

TEST(ChangedArguments, TheOverloadIsTheOneOfTheCall) {
  auto compiled = compile(Overloaded());
  at::Tensor x = at::ones({2});
  const at::Tensor constant = x;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(compiled(x), "lvalue");
    EXPECT_EQ(compiled(constant), "const");
    EXPECT_EQ(compiled(at::ones({2})), "temporary");
  }
}

// Equal numbers of different types select different functions, which may return different types.
TEST(ChangedArguments, TypesAreReported) {
  const auto function = [](const at::Tensor& x, auto number) {
    if constexpr (std::is_same_v<decltype(number), int>) {
      return std::make_tuple(x + number, std::string("int"));
    } else {
      return x * static_cast<double>(number);
    }
  };
  auto compiled = compile(function);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(std::get<1>(compiled(at::ones({2}), 3)), "int");
    EXPECT_THAT(compiled(at::ones({2}), std::int64_t{3}), BitEqual(at::full({2}, 3.0)));
    EXPECT_THAT(compiled(at::ones({2}), 3.0F), BitEqual(at::full({2}, 3.0)));
    EXPECT_THAT(compiled(at::ones({2}), 3.0), BitEqual(at::full({2}, 3.0)));
  }
  EXPECT_EQ(compiled.stats().compiles, 4);
}

}  // namespace
}  // namespace rehearse::compiler::changed_arguments_test
