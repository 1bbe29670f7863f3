// SPDX-License-Identifier: BSD-3-Clause
// Contract: SeveralWorks combines works into one, which is complete when all of them are. The futures of these works
// may complete in any order. While a SeveralWorks has no works yet, wait(), isCompleted() and the getters of its
// futures throw.
#include <ATen/ATen.h>
#include <ATen/core/jit_type.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse_internal/comm/several_works.h>

namespace rehearse::comm {
namespace {

using c10::ivalue::Future;
using testing::ElementsAre;
using testing::HasSubstr;

class Part final : public c10d::Work {
 public:
  bool isCompleted() override { return outputs->completed(); }
  WorkFuture getFuture() override { return outputs; }
  WorkFuture getFutureResult() override { return outcome; }
  float getDuration() const override { return duration; }

  const WorkFuture outputs = c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()));
  const WorkFuture outcome = c10::make_intrusive<Future>(c10::IntType::get());
  float duration = 0;
};

struct SeveralWorksTest : testing::Test {
  void give() { all->take({first, second}); }

  const c10::intrusive_ptr<Part> first = c10::make_intrusive<Part>(), second = c10::make_intrusive<Part>();
  const c10::intrusive_ptr<SeveralWorks<Part>> all = c10::make_intrusive<SeveralWorks<Part>>(0);
};

TEST_F(SeveralWorksTest, BeforeItHasThem_RefusesEveryQuestion) {
  EXPECT_EQ(all->retrieveOpType(), c10d::OpType::COALESCED);
  const auto refusal = [](const auto& ask) -> std::string {
    try {
      ask();
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "answered";
  };
  const auto is_refused = HasSubstr("nothing can be asked of it before endCoalescing() has launched them");
  EXPECT_THAT(refusal([&] { all->isCompleted(); }), is_refused);
  EXPECT_THAT(refusal([&] { all->wait(); }), is_refused);
  EXPECT_THAT(refusal([&] { all->getFuture(); }), is_refused);
  EXPECT_THAT(refusal([&] { all->getFutureResult(); }), is_refused);
}

TEST_F(SeveralWorksTest, FuturesInAnyOrder_AreOneInTheOrderOfTheWorks) {
  give();
  const auto future = all->getFuture();
  second->outputs->markCompleted(c10::IValue(std::vector<at::Tensor>{at::full({1}, 2.0)}));
  EXPECT_FALSE(future->completed());
  EXPECT_FALSE(all->isCompleted());
  first->outputs->markCompleted(c10::IValue(std::vector<at::Tensor>{at::full({1}, 1.0)}));
  ASSERT_TRUE(future->completed());
  EXPECT_TRUE(all->isCompleted());
  std::vector<double> values;
  for (const auto& tensor : future->value().toTensorVector()) values.push_back(tensor.item<double>());
  EXPECT_THAT(values, ElementsAre(1.0, 2.0));
}

TEST_F(SeveralWorksTest, Result_IsTheFirstThatIsNoSuccess) {
  give();
  const auto result = all->getFutureResult();
  second->outcome->markCompleted(c10::IValue(static_cast<std::int64_t>(c10d::WorkResult::TIMEOUT)));
  EXPECT_FALSE(result->completed());
  first->outcome->markCompleted(c10::IValue(static_cast<std::int64_t>(c10d::WorkResult::SUCCESS)));
  ASSERT_TRUE(result->completed());
  EXPECT_EQ(result->value().toInt(), static_cast<std::int64_t>(c10d::WorkResult::TIMEOUT));
}

TEST_F(SeveralWorksTest, Duration_IsThatOfTheLongest) {
  give();
  first->duration = 3;
  second->duration = 2;
  EXPECT_EQ(all->getDuration(), 3.0F);
}

TEST_F(SeveralWorksTest, TakesItsWorksOnce) {
  give();
  EXPECT_DEATH(all->take({first}), "works_.empty\\(\\) && !works.empty\\(\\)");
}

}  // namespace
}  // namespace rehearse::comm
