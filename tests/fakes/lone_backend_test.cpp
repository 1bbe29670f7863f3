// SPDX-License-Identifier: BSD-3-Clause
// Contract: tensors have the contents that torch's own "fake" back end leaves. Beyond that, works are complete, futures
// hold outputs, arguments are checked, and groups can be made from groups.
#include <rehearse_internal/fakes/lone_backend.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/fakes/lone_group.h>
#include <torch/csrc/distributed/c10d/FakeProcessGroup.hpp>

#include "bit_equal.h"

namespace rehearse::fakes {
namespace {

using rehearse::test::BitEqual;

using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;

constexpr int kRank = 2, kSize = 3;

// One call on a back end. Returns all tensors of the call.
using Call = Tensors (*)(c10d::Backend& backend);

at::Tensor filled(c10::IntArrayRef sizes, double first) {
  return at::arange(first, first + static_cast<double>(c10::multiply_integers(sizes))).view(sizes);
}

Tensors each(int count, c10::IntArrayRef sizes, double first) {
  Tensors tensors;
  for (int i = 0; i < count; ++i) tensors.push_back(filled(sizes, first + 100 * i));
  return tensors;
}

template <class... Lists>
Tensors all(const Lists&... lists) {
  Tensors tensors;
  (tensors.insert(tensors.end(), lists.begin(), lists.end()), ...);
  return tensors;
}

struct NamedCall {
  const char* name;
  Call call;
};

const NamedCall kCalls[] = {
    {"broadcast",
     [](c10d::Backend& b) {
       auto t = each(1, {2, 3}, 1);
       b.broadcast(t);
       return t;
     }},
    {"allreduce",
     [](c10d::Backend& b) {
       auto t = each(1, {5}, 1);
       b.allreduce(t);
       return t;
     }},
    {"allreduce_sparse",
     [](c10d::Backend& b) {
       auto t = each(1, {5}, 1);
       b.allreduce_sparse(t);
       return t;
     }},
    {"allreduce_coalesced",
     [](c10d::Backend& b) {
       auto t = each(2, {0}, 1);
       b.allreduce_coalesced(t);
       return t;
     }},
    {"reduce",
     [](c10d::Backend& b) {
       auto t = each(1, {5}, 1);
       b.reduce(t);
       return t;
     }},
    {"allgather",
     [](c10d::Backend& b) {
       TensorLists out{each(kSize, {2, 2}, 1)};
       Tensors in{filled({2, 2}, 50).t()};
       b.allgather(out, in);
       return all(out[0], in);
     }},
    {"_allgather_base",
     [](c10d::Backend& b) {
       auto out = filled({6, 2}, 1), in = filled({2, 2}, 50);
       b._allgather_base(out, in);
       return Tensors{out, in};
     }},
    {"allgather_coalesced",
     [](c10d::Backend& b) {
       TensorLists out{each(2, {2}, 1), each(2, {2}, 9), each(2, {2}, 20)};
       auto in = each(2, {2}, 50);
       b.allgather_coalesced(out, in);
       return all(out[0], out[1], out[2], in);
     }},
    {"allgather_into_tensor_coalesced",
     [](c10d::Backend& b) {
       auto out = each(2, {3}, 1), in = each(2, {1}, 50);
       b.allgather_into_tensor_coalesced(out, in);
       return all(out, in);
     }},
    {"gather",
     [](c10d::Backend& b) {
       TensorLists out{each(kSize, {2}, 1)};
       auto in = each(1, {2}, 50);
       c10d::GatherOptions options;
       options.rootRank = kRank;
       b.gather(out, in, options);
       return all(out[0], in);
     }},
    {"scatter",
     [](c10d::Backend& b) {
       auto out = each(1, {2}, 1);
       TensorLists in{each(kSize, {2}, 50)};
       c10d::ScatterOptions options;
       options.rootRank = kRank;
       b.scatter(out, in, options);
       return all(out, in[0]);
     }},
    {"reduce_scatter",
     [](c10d::Backend& b) {
       auto out = each(1, {2}, 1);
       TensorLists in{each(kSize, {2}, 50)};
       b.reduce_scatter(out, in);
       return all(out, in[0]);
     }},
    {"_reduce_scatter_base",
     [](c10d::Backend& b) {
       auto out = filled({2}, 1), in = filled({6}, 50);
       b._reduce_scatter_base(out, in);
       return Tensors{out, in};
     }},
    {"reduce_scatter_tensor_coalesced",
     [](c10d::Backend& b) {
       auto out = each(2, {1}, 1), in = each(2, {3}, 50);
       b.reduce_scatter_tensor_coalesced(out, in);
       return all(out, in);
     }},
    {"alltoall_base",
     [](c10d::Backend& b) {
       auto out = filled({6}, 1), in = filled({6}, 50);
       std::vector<std::int64_t> even;
       b.alltoall_base(out, in, even, even);
       return Tensors{out, in};
     }},
    {"alltoall",
     [](c10d::Backend& b) {
       auto out = each(kSize, {2}, 1), in = each(kSize, {2}, 50);
       b.alltoall(out, in);
       return all(out, in);
     }},
    {"send",
     [](c10d::Backend& b) {
       auto t = each(1, {2}, 1);
       b.send(t, 0, 7);
       return t;
     }},
    {"recv",
     [](c10d::Backend& b) {
       auto t = each(1, {2}, 1);
       b.recv(t, 0, 7);
       return t;
     }},
    {"recvAnysource",
     [](c10d::Backend& b) {
       auto t = each(1, {2}, 1);
       b.recvAnysource(t, 7);
       return t;
     }},
    {"barrier",
     [](c10d::Backend& b) {
       b.barrier();
       return Tensors{};
     }},
};

TEST(LoneBackend, EveryCall_LeavesTensorsAsTorchsFakeBackend) {
  for (const auto& [name, call] : kCalls) {
    const auto torchs = c10d::FakeProcessGroup::_create_internal(kRank, kSize);
    LoneBackend ours(kRank, kSize);
    const auto expected = call(*torchs), actual = call(ours);
    EXPECT_THAT(actual, BitEqual(expected)) << name;
  }
}

TEST(LoneBackend, Work_IsCompleteAndItsFutureHoldsTheOutputs) {
  LoneBackend group(kRank, kSize);
  auto tensors = each(1, {2}, 1);
  const auto work = group.allreduce(tensors, {});
  EXPECT_TRUE(work->isCompleted() && work->isSuccess() && work->wait());
  EXPECT_EQ(work->exception(), nullptr);
  EXPECT_TRUE(work->getFuture()->completed());
  EXPECT_TRUE(work->getFuture()->value().toTensorVector().at(0).is_same(tensors[0]));
  EXPECT_TRUE(work->getFutureResult()->completed());
  EXPECT_TRUE(work->result().at(0).is_same(tensors[0]));
  EXPECT_THROW(work->sourceRank(), c10::Error);
  EXPECT_EQ(group.recv(tensors, 1, 0)->sourceRank(), 1);
  EXPECT_EQ(group.recvAnysource(tensors, 0)->sourceRank(), 0);
  EXPECT_EQ(LoneBackend(0, 2).recvAnysource(tensors, 0)->sourceRank(), 1);
  EXPECT_EQ(group.getSequenceNumberForGroup(), 1u);
  group.monitoredBarrier({}, true);
  EXPECT_EQ(group.barrier({})->getSequencenumber(), 3u);
}

// Calls through the dispatcher, as programs do.
TEST(LoneBackend, Group_TakesACallOfEachKind) {
  const auto group = lone_group(1000, 1024);
  EXPECT_EQ(group.rank(), 1000);
  EXPECT_EQ(group.size(), 1024);
  EXPECT_EQ(group->getGroupName(), "world");
  const auto tensor = at::full({3}, 7);
  EXPECT_TRUE(group.allreduce(tensor)->wait());
  EXPECT_THAT(tensor, BitEqual(at::full({3}, 7)));
  EXPECT_TRUE(group.broadcast(tensor)->wait());
  EXPECT_TRUE(group.barrier()->wait());
  group->startCoalescing(c10::kCPU);
  group.send(tensor, 3);
  group.recv(tensor, 3);
  EXPECT_TRUE(group->endCoalescing(c10::kCPU)->wait());
  group.extend_timeout_once(std::chrono::seconds(1));
}

TEST(LoneBackend, GroupsOfGroups_KeepTheRanksPlace) {
  LoneBackend group(4, 8);
  const auto options = group.getBackendOptions();
  options->group_name = "odd";
  const auto part = group.split({}, {6, 4, 2}, options);
  EXPECT_EQ(part->getRank(), 1);
  EXPECT_EQ(part->getSize(), 3);
  EXPECT_EQ(part->getGroupUid(), "odd");
  EXPECT_EQ(group.split({}, {0, 1}, options), nullptr);
  const auto left = group.shrink({0, 1, 7}, 0, options);
  EXPECT_EQ(left->getRank(), 2);
  EXPECT_EQ(left->getSize(), 5);
  EXPECT_THROW(group.shrink({4}, 0, options), c10::Error);
  EXPECT_EQ(group.merge({}, options, 3, 16)->getSize(), 16);
}

TEST(LoneBackend, WhatMakesNoSense_IsRefused) {
  EXPECT_THROW(LoneBackend(3, 3), c10::Error);
  EXPECT_THROW(LoneBackend(-1, 3), c10::Error);
  LoneBackend group(0, 1);
  EXPECT_THROW(group.registerOnCompletionHook([](auto) {}), c10::Error);
  auto output = at::zeros({2}), input = at::zeros({3});
  EXPECT_THROW(group._allgather_base(output, input, {}), c10::Error);
  std::vector<at::Tensor> two{output, input};
  EXPECT_THROW(group.allreduce(two, {}), c10::Error);
}

}  // namespace
}  // namespace rehearse::fakes
