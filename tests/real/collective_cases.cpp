// SPDX-License-Identifier: BSD-3-Clause
#include "collective_cases.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "bit_equal.h"
#include "core/comm/test_world.h"
#include "kit/pre_mul_sum.h"

namespace rehearse::real {
namespace {

using comm::ProcessGroup;
using rehearse::test::BitEqual;
using Op = c10d::ReduceOp::RedOpType;

// Small numbers that vary with the element and the rank. Their sums are exact in every dtype.
at::Tensor numbers(at::IntArrayRef sizes, at::ScalarType dtype, int rank) {
  std::int64_t numel = 1;
  for (const auto size : sizes) numel *= size;
  return at::remainder(at::arange(numel) * 3 + rank, 5).reshape(sizes).to(dtype);
}

Tensors like(int count, const Place& place, at::IntArrayRef sizes, at::ScalarType dtype) {
  Tensors made;
  for (int i = 0; i < count; ++i) made.push_back(place(at::zeros(sizes, dtype)));
  return made;
}

void done(const comm::WorkPtr& work) { EXPECT_TRUE(work->wait()); }

CollectiveCase allreduce_of(at::ScalarType dtype, Op op, bool async) {
  auto name = fmt::format("allreduce {} {} {}", c10::toString(dtype), comm::name_of(op), async ? "async" : "sync");
  return {name, [=](int rank, int, const ProcessGroup& group, const Place& place) {
            Tensors tensors{place(numbers({3, 7}, dtype, rank))};
            c10d::AllreduceOptions options;
            options.reduceOp = op;
            options.asyncOp = async;
            done(group->allreduce(tensors, options));
            return tensors;
          }};
}

}  // namespace

std::vector<CollectiveCase> reductions() {
  std::vector<CollectiveCase> cases;
  for (const auto dtype :
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kChar, at::kByte, at::kInt, at::kLong}) {
    for (const auto op : {Op::SUM, Op::AVG, Op::PRODUCT, Op::MIN, Op::MAX}) {
      cases.push_back(allreduce_of(dtype, op, true));
    }
  }
  cases.push_back(allreduce_of(at::kComplexFloat, Op::SUM, true));
  cases.push_back(allreduce_of(at::kComplexDouble, Op::SUM, true));
  cases.push_back(allreduce_of(at::kBool, Op::SUM, true));
  cases.push_back(allreduce_of(at::kBool, Op::PRODUCT, true));
  cases.push_back(allreduce_of(at::kFloat, Op::SUM, false));
  cases.push_back({"premul_sum", [](int rank, int, const ProcessGroup& group, const Place& place) {
                     Tensors tensors{place(numbers({5}, at::kFloat, rank))};
                     c10d::AllreduceOptions options;
                     options.reduceOp = rehearse::test::pre_mul_sum(0.5);
                     done(group->allreduce(tensors, options));
                     return tensors;
                   }});
  cases.push_back({"reduce", [](int rank, int ranks, const ProcessGroup& group, const Place& place) {
                     Tensors tensors{place(numbers({4}, at::kFloat, rank))};
                     c10d::ReduceOptions options;
                     options.rootRank = ranks - 1;
                     done(group->reduce(tensors, options));
                     return rank == ranks - 1 ? tensors : Tensors{};
                   }});
  cases.push_back({"reduce_scatter", [](int rank, int ranks, const ProcessGroup& group, const Place& place) {
                     // The part of rank j has j + 1 elements.
                     std::vector<Tensors> inputs(1);
                     for (int j = 0; j < ranks; ++j) inputs[0].push_back(place(numbers({j + 1}, at::kFloat, rank + j)));
                     Tensors outputs{place(at::zeros({rank + 1}))};
                     done(group->reduce_scatter(outputs, inputs));
                     return outputs;
                   }});
  cases.push_back({"_reduce_scatter_base", [](int rank, int ranks, const ProcessGroup& group, const Place& place) {
                     auto input = place(numbers({ranks, 3}, at::kLong, rank));
                     auto output = place(at::zeros({3}, at::kLong));
                     done(group->_reduce_scatter_base(output, input));
                     return Tensors{output};
                   }});
  return cases;
}

std::vector<CollectiveCase> copies() {
  std::vector<CollectiveCase> cases;
  for (const auto dtype : {at::kFloat, at::kBool, at::kComplexFloat, at::kFloat8_e4m3fn}) {
    cases.push_back({fmt::format("broadcast {}", c10::toString(dtype)),
                     [dtype](int rank, int ranks, const ProcessGroup& group, const Place& place) {
                       const auto values = numbers({6}, at::kFloat, rank).to(dtype);
                       Tensors tensors{place(values)};
                       c10d::BroadcastOptions options;
                       options.rootRank = ranks - 1;
                       done(group->broadcast(tensors, options));
                       return tensors;
                     }});
  }
  cases.push_back({"allgather", [](int rank, int ranks, const ProcessGroup& group, const Place& place) {
                     std::vector<Tensors> outputs(1);
                     for (int j = 0; j < ranks; ++j) outputs[0].push_back(place(at::zeros({j + 1})));
                     Tensors inputs{place(numbers({rank + 1}, at::kFloat, rank))};
                     done(group->allgather(outputs, inputs));
                     return outputs[0];
                   }});
  cases.push_back({"_allgather_base", [](int rank, int ranks, const ProcessGroup& group, const Place& place) {
                     auto output = place(at::zeros({ranks, 2}));
                     auto input = place(numbers({2}, at::kFloat, rank));
                     done(group->_allgather_base(output, input));
                     return Tensors{output};
                   }});
  cases.push_back({"gather", [](int rank, int ranks, const ProcessGroup& group, const Place& place) {
                     std::vector<Tensors> outputs;
                     if (rank == 0) outputs.push_back(like(ranks, place, {3}, at::kInt));
                     Tensors inputs{place(numbers({3}, at::kInt, rank))};
                     done(group->gather(outputs, inputs));
                     return rank == 0 ? outputs[0] : Tensors{};
                   }});
  cases.push_back({"scatter", [](int rank, int ranks, const ProcessGroup& group, const Place& place) {
                     std::vector<Tensors> inputs;
                     if (rank == ranks - 1) {
                       inputs.emplace_back();
                       for (int j = 0; j < ranks; ++j) inputs[0].push_back(place(numbers({3}, at::kLong, j)));
                     }
                     Tensors outputs{place(at::zeros({3}, at::kLong))};
                     c10d::ScatterOptions options;
                     options.rootRank = ranks - 1;
                     done(group->scatter(outputs, inputs, options));
                     return outputs;
                   }});
  return cases;
}

std::vector<CollectiveCase> exchanges() {
  std::vector<CollectiveCase> cases;
  cases.push_back({"alltoall_base", [](int rank, int ranks, const ProcessGroup& group, const Place& place) {
                     // Rank i sends i + j rows to rank j.
                     std::vector<std::int64_t> out, in;
                     for (int j = 0; j < ranks; ++j) {
                       in.push_back(rank + j);
                       out.push_back(rank + j);
                     }
                     const std::int64_t rows = std::accumulate(in.begin(), in.end(), std::int64_t{0});
                     auto output = place(at::zeros({rows, 2}));
                     done(comm::alltoall(group, output, place(numbers({rows, 2}, at::kFloat, rank)), out, in));
                     return Tensors{output};
                   }});
  cases.push_back({"alltoall", [](int rank, int ranks, const ProcessGroup& group, const Place& place) {
                     Tensors inputs;
                     Tensors outputs = like(ranks, place, {2}, at::kDouble);
                     for (int j = 0; j < ranks; ++j) inputs.push_back(place(numbers({2}, at::kDouble, rank * 10 + j)));
                     done(group->alltoall(outputs, inputs));
                     return outputs;
                   }});
  cases.push_back({"ring", [](int rank, int ranks, const ProcessGroup& group, const Place& place) {
                     if (ranks == 1) return Tensors{};
                     const auto received = place(at::zeros({4}));
                     const auto sent = comm::send(group, place(numbers({4}, at::kFloat, rank)), (rank + 1) % ranks);
                     done(comm::recv(group, received, (rank + ranks - 1) % ranks));
                     done(sent);
                     return Tensors{received};
                   }});
  cases.push_back({"recv from anybody", [](int rank, int ranks, const ProcessGroup& group, const Place& place) {
                     if (ranks != 2) return Tensors{};
                     const auto tensor = place(numbers({4}, at::kFloat, rank));
                     done(rank == 0 ? comm::recv_any(group, tensor) : comm::send(group, tensor, 0));
                     return Tensors{tensor};
                   }});
  cases.push_back({"coalesced", [](int rank, int, const ProcessGroup& group, const Place& place) {
                     Tensors tensors{place(numbers({3}, at::kFloat, rank)), place(numbers({0}, at::kFloat, rank)),
                                     place(numbers({2, 2}, at::kFloat, rank + 1))};
                     done(group->allreduce_coalesced(tensors));
                     return tensors;
                   }});
  cases.push_back({"coalescing manager", [](int rank, int ranks, const ProcessGroup& group, const Place& place) {
                     auto input = place(numbers({2}, at::kFloat, rank));
                     auto output = place(at::zeros({2 * ranks}));
                     Tensors tensors{place(numbers({3}, at::kFloat, rank))};
                     const auto device = input.device().type();
                     group->startCoalescing(device);
                     group->allreduce(tensors);
                     group->_allgather_base(output, input);
                     done(group->endCoalescing(device));
                     return Tensors{tensors[0], output};
                   }});
  cases.push_back({"barrier", [](int, int, const ProcessGroup& group, const Place&) {
                     done(group->barrier());
                     return Tensors{};
                   }});
  cases.push_back({"many at once", [](int rank, int, const ProcessGroup& group, const Place& place) {
                     Tensors tensors;
                     std::vector<comm::WorkPtr> works;
                     for (int i = 0; i < 10; ++i) {
                       tensors.push_back(place(numbers({i}, at::kFloat, rank + i)));
                       works.push_back(comm::allreduce(group, tensors.back()));
                     }
                     for (const auto& work : works) done(work);
                     return tensors;
                   }});
  return cases;
}

void expect_alike(const std::vector<CollectiveCase>& cases, const std::vector<std::vector<Tensors>>& expected,
                  const std::vector<std::vector<Tensors>>& held) {
  ASSERT_EQ(held.size(), expected.size());
  for (std::size_t rank = 0; rank < expected.size(); ++rank) {
    ASSERT_EQ(expected[rank].size(), cases.size()) << "rank " << rank;
    ASSERT_EQ(held[rank].size(), cases.size()) << "rank " << rank;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      EXPECT_THAT(held[rank][i], BitEqual(expected[rank][i])) << cases[i].name << ", rank " << rank;
    }
  }
}

}  // namespace rehearse::real
