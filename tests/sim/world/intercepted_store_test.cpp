// SPDX-License-Identifier: BSD-3-Clause
#include "layers/intercepted_store.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/fakes/fake_store.h>

namespace rehearse::sim {
namespace {

using ::testing::ElementsAre;
using Value = StoreCall::Value;

// Notes "outer: before get". An answer gets `added` at its end.
class Noting final : public StoreInterceptor {
 public:
  Noting(std::string name, std::vector<std::string>& notes, Value added = {})
      : name_(std::move(name)), notes_(notes), added_(std::move(added)) {}

  void before(const StoreCall& call) override { note("before", call); }
  void after(const StoreCall& call) override {
    note("after", call);
    for (auto& answer : call.answers) answer.insert(answer.end(), added_.begin(), added_.end());
    last = call.result;
  }

  std::int64_t last = -1;  // the result of the last call

 private:
  void note(std::string_view when, const StoreCall& call) {
    notes_.push_back(name_ + ": " + std::string(when) + " " + std::string(call.name));
  }

  const std::string name_;
  std::vector<std::string>& notes_;
  const Value added_;
};

c10::intrusive_ptr<c10d::Store> fake_store() {
  return c10::make_intrusive<fakes::FakeStore>(std::make_shared<fakes::StoreState>());
}

struct Stack {
  std::vector<std::string> notes;
  std::shared_ptr<Noting> outer = std::make_shared<Noting>("outer", notes, Value{8});
  std::shared_ptr<Noting> inner = std::make_shared<Noting>("inner", notes, Value{9});
  c10::intrusive_ptr<c10d::Store> below = fake_store();
  c10::intrusive_ptr<c10d::Store> store = intercepted(below, {outer, inner});
};

TEST(InterceptedStore, ACall_GoesDownThroughTheInterceptorsAndUpAgain) {
  Stack stack;
  stack.store->set("key", Value{7});
  EXPECT_THAT(stack.notes,
              ElementsAre("outer: before set", "inner: before set", "inner: after set", "outer: after set"));
  EXPECT_EQ(stack.below->get("key"), Value{7});
}

TEST(InterceptedStore, Answers_AreWhatTheInterceptorsMakeOfThem) {
  Stack stack;
  stack.below->set("key", Value{7});
  EXPECT_EQ(stack.store->get("key"), (Value{7, 9, 8}));
  EXPECT_THAT(stack.store->multiGet({"key", "key"}), ElementsAre(Value{7, 9, 8}, Value{7, 9, 8}));
  EXPECT_EQ(stack.below->get("key"), Value{7});
}

TEST(InterceptedStore, Numbers_AreResultsOfTheCall) {
  Stack stack;
  EXPECT_EQ(stack.store->add("count", 5), 5);
  EXPECT_EQ(stack.outer->last, 5);
  EXPECT_TRUE(stack.store->check({"count"}));
  EXPECT_EQ(stack.outer->last, 1);
  EXPECT_FALSE(stack.store->check({"other"}));
  EXPECT_EQ(stack.outer->last, 0);
}

TEST(InterceptedStore, ACallThatThrows_HasNoEnd) {
  Stack stack;
  EXPECT_ANY_THROW(stack.store->get("missing"));
  EXPECT_THAT(stack.notes, ElementsAre("outer: before get", "inner: before get"));
}

TEST(InterceptedStore, AClone_HasTheSameInterceptors) {
  Stack stack;
  stack.store->clone()->set("key", Value{7});
  EXPECT_EQ(stack.notes.size(), 4u);
  EXPECT_EQ(stack.below->get("key"), Value{7});
}

TEST(InterceptedStore, WithoutInterceptors_IsTheStoreBelow) {
  const c10::intrusive_ptr<c10d::Store> below = fake_store();
  EXPECT_EQ(intercepted(below, {}), below);
}

}  // namespace
}  // namespace rehearse::sim
