// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/rank_context.h>

#include <map>
#include <memory>
#include <string>

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bit_equal.h"

namespace rehearse {
namespace {

using rehearse::test::BitEqual;

// A context that only records its calls.
class NotingContext final : public RankContext {
 public:
  int rank() const noexcept override { return 0; }
  int size() const noexcept override { return 1; }
  int incarnation() const noexcept override { return 0; }
  const Group& group() const noexcept override { return group_; }
  const c10::intrusive_ptr<c10d::Store>& store() const noexcept override { return store_; }
  Group new_group(const std::vector<int>&, std::string_view) override { return {}; }
  Group new_local_group(const std::vector<int>&, std::string_view) override { return {}; }
  at::Generator& generator() const noexcept override { return generator_; }
  at::Device device() const noexcept override { return at::kCPU; }
  VirtualTime now() const noexcept override { return kTimeZero; }
  void compute(VirtualDuration) override {}
  void progress(std::int64_t, std::int64_t, std::string_view) override {}

  std::vector<std::string> labels;
  std::map<std::string, int> checks;
  std::vector<std::pair<std::string, at::Tensor>> results;

 protected:
  std::shared_ptr<void> begin_label(std::string_view name) override {
    labels.emplace_back(name);
    return {nullptr, [this](void*) { labels.pop_back(); }};
  }
  void count_check(std::string_view what) override { ++checks[std::string(what)]; }
  void keep_result(std::string_view name, at::Tensor value) override { results.emplace_back(name, std::move(value)); }
  std::any& local_slot(const void* key) override { return slots_[key]; }

 private:
  Group group_;
  c10::intrusive_ptr<c10d::Store> store_;
  mutable at::Generator generator_;
  std::map<const void*, std::any> slots_;
};

TEST(RankContext, Labels_NestAndEndWithTheirScope) {
  NotingContext context;
  {
    auto outer = context.label("layer1");
    {
      auto inner = context.label("weight");
      EXPECT_EQ(context.labels, (std::vector<std::string>{"layer1", "weight"}));
    }
    EXPECT_EQ(context.labels, std::vector<std::string>{"layer1"});
  }
  EXPECT_TRUE(context.labels.empty());
}

TEST(RankContext, Expect_CountsWhatHoldsAndThrowsWhatDoesNot) {
  NotingContext context;
  context.expect(true, "loss is finite");
  context.expect(true, "loss is finite");
  EXPECT_EQ(context.checks, (std::map<std::string, int>{{"loss is finite", 2}}));
  try {
    context.expect(false, "loss is finite", "step 3: nan");
    FAIL();
  } catch (const CheckError& error) {
    EXPECT_STREQ(error.what(), "check \"loss is finite\" did not hold: step 3: nan");
  }
  try {
    context.expect(false, "replicas agree");
    FAIL();
  } catch (const CheckError& error) {
    EXPECT_STREQ(error.what(), "check \"replicas agree\" did not hold");
  }
  EXPECT_EQ(context.checks.size(), 1u);
}

TEST(RankContext, Result_IsACopyOnTheCpu) {
  NotingContext context;
  const auto loss = at::ones({2}, at::TensorOptions().requires_grad(true));
  context.result("loss", loss);
  loss.detach().fill_(7);
  ASSERT_EQ(context.results.size(), 1u);
  EXPECT_EQ(context.results[0].first, "loss");
  EXPECT_FALSE(context.results[0].second.requires_grad());
  EXPECT_THAT(context.results[0].second, BitEqual(at::ones({2})));
}

TEST(RankContext, Local_OneOfEachTypeAlsoWhenItCannotBeCopied) {
  struct Counter {
    int value = 0;
    std::unique_ptr<int> not_copyable;
  };
  NotingContext context;
  context.local<Counter>().value = 7;
  context.local<int>() = 3;
  EXPECT_EQ(context.local<Counter>().value, 7);
  EXPECT_EQ(context.local<int>(), 3);
  EXPECT_EQ(NotingContext().local<Counter>().value, 0);
}

}  // namespace
}  // namespace rehearse
