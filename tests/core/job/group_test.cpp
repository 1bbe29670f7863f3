// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/group.h>

#include <stdexcept>
#include <string>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace rehearse {
namespace {

// Writes down each call; completes nothing.
class NotingBackend final : public c10d::Backend {
 public:
  NotingBackend() : c10d::Backend(1, 4) {}
  const std::string getBackendName() const override { return "noting"; }

  Work allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    return note("allreduce", tensors, {static_cast<std::int64_t>(options.reduceOp.op_)});
  }
  Work broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override {
    return note("broadcast", tensors, {options.rootRank});
  }
  Work reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& options) override {
    return note("reduce", tensors, {options.rootRank, static_cast<std::int64_t>(options.reduceOp.op_)});
  }
  Work allgather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                 const c10d::AllgatherOptions&) override {
    auto tensors = outputs.at(0);
    tensors.push_back(inputs.at(0));
    return note("allgather", tensors, {});
  }
  Work reduce_scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                      const c10d::ReduceScatterOptions& options) override {
    auto tensors = inputs.at(0);
    tensors.insert(tensors.begin(), outputs.at(0));
    return note("reduce_scatter", tensors, {static_cast<std::int64_t>(options.reduceOp.op_)});
  }
  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                     std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions&) override {
    auto numbers = output_splits;
    numbers.insert(numbers.end(), input_splits.begin(), input_splits.end());
    return note("alltoall", {output, input}, numbers);
  }
  Work send(std::vector<at::Tensor>& tensors, int to, int tag) override { return note("send", tensors, {to, tag}); }
  Work recv(std::vector<at::Tensor>& tensors, int from, int tag) override { return note("recv", tensors, {from, tag}); }
  Work barrier(const c10d::BarrierOptions&) override { return note("barrier", {}, {}); }

  std::string call;
  std::vector<at::Tensor> given;
  std::vector<std::int64_t> numbers;

 private:
  Work note(const char* name, const std::vector<at::Tensor>& tensors, std::vector<std::int64_t> values) {
    call = name;
    given = tensors;
    numbers = std::move(values);
    return c10::make_intrusive<c10d::Work>();
  }
};

class GroupCalls : public testing::Test {
 protected:
  GroupCalls() {
    auto process_group = c10::make_intrusive<c10d::ProcessGroup>(1, 4);
    process_group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM, backend_);
    process_group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
    group_ = Group(process_group);
  }

  // The last call's name, that its tensors are `tensors` themselves and no copies, and its other arguments.
  void expect_call(const char* name, const std::vector<at::Tensor>& tensors, std::vector<std::int64_t> numbers) {
    EXPECT_EQ(backend_->call, name);
    EXPECT_EQ(backend_->numbers, numbers) << name;
    ASSERT_EQ(backend_->given.size(), tensors.size()) << name;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_TRUE(backend_->given[i].is_alias_of(tensors[i])) << name << ", tensor " << i;
    }
  }

  c10::intrusive_ptr<NotingBackend> backend_ = c10::make_intrusive<NotingBackend>();
  Group group_;
  const at::Tensor a_ = at::ones({2}), b_ = at::ones({2}), c_ = at::ones({2});
};

constexpr auto kMax = static_cast<std::int64_t>(c10d::ReduceOp::MAX);
constexpr auto kSum = static_cast<std::int64_t>(c10d::ReduceOp::SUM);

TEST_F(GroupCalls, EachCall_HandsItsArgumentsToTheProcessGroup) {
  EXPECT_TRUE(group_.allreduce(a_));
  expect_call("allreduce", {a_}, {kSum});
  group_.allreduce(a_, c10d::ReduceOp::MAX);
  expect_call("allreduce", {a_}, {kMax});
  group_.broadcast(a_, 3);
  expect_call("broadcast", {a_}, {3});
  group_.reduce(a_, 2, c10d::ReduceOp::MAX);
  expect_call("reduce", {a_}, {2, kMax});
  group_.allgather({a_, b_}, c_);
  expect_call("allgather", {a_, b_, c_}, {});
  group_.reduce_scatter(a_, {b_, c_}, c10d::ReduceOp::MAX);
  expect_call("reduce_scatter", {a_, b_, c_}, {kMax});
  group_.alltoall(a_, b_, {1, 1}, {2, 0});
  expect_call("alltoall", {a_, b_}, {1, 1, 2, 0});
  group_.send(a_, 2, 9);
  expect_call("send", {a_}, {2, 9});
  group_.recv(a_, 3, 8);
  expect_call("recv", {a_}, {3, 8});
  group_.barrier();
  EXPECT_EQ(backend_->call, "barrier");
}

TEST_F(GroupCalls, RankAndSize_AreTheGroupsOwn) {
  EXPECT_TRUE(static_cast<bool>(group_));
  EXPECT_EQ(group_.rank(), 1);
  EXPECT_EQ(group_.size(), 4);
}

TEST(Group, Empty_EveryCallSaysThatTheRankIsNoMember) {
  const Group empty;
  EXPECT_FALSE(static_cast<bool>(empty));
  EXPECT_THROW(empty.rank(), std::logic_error);
  EXPECT_THROW(empty.barrier(), std::logic_error);
  try {
    empty.allreduce(at::ones({1}));
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "this group is empty: the calling rank is not a member of it");
  }
}

}  // namespace
}  // namespace rehearse
