// SPDX-License-Identifier: BSD-3-Clause
#include "random_calls.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace rehearse::real {
namespace {

using Kind = RandomCall::Kind;

class Author {
 public:
  explicit Author(std::uint64_t seed) : random_(seed) {}

  RandomProgram write() {
    program_.ranks = static_cast<int>(2 + below(5));
    program_.calls.resize(static_cast<std::size_t>(program_.ranks));
    groups_.push_back(all_ranks());
    const auto steps = 1 + below(8);
    for (std::uint64_t i = 0; i < steps; ++i) add_step();
    for (auto& calls : program_.calls) {
      for (auto& call : calls) {
        call.pause = static_cast<std::int64_t>(1 + below(30));
        call.waits = below(3) == 0;
      }
    }
    if (below(4) != 0) make_mistakes();
    return std::move(program_);
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  std::vector<RandomCall>& of(int rank) { return program_.calls[static_cast<std::size_t>(rank)]; }

  std::vector<int> all_ranks() const {
    std::vector<int> ranks(static_cast<std::size_t>(program_.ranks));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  void add_step() {
    switch (below(8)) {
      case 0:
        return add_group();
      case 1:
      case 2:
        return add_message();
      default:
        return add_collective();
    }
  }

  // Every rank of the world makes this call.
  void add_group() {
    RandomCall call;
    call.kind = Kind::new_group;
    for (const int rank : all_ranks()) {
      if (below(3) != 0) call.members.push_back(rank);
    }
    if (call.members.empty()) call.members = all_ranks();
    if (below(2) == 0) call.name = "own" + std::to_string(groups_.size());
    for (const int rank : all_ranks()) of(rank).push_back(call);
    groups_.push_back(call.members);
  }

  int some_group() { return static_cast<int>(below(groups_.size())); }

  void add_collective() {
    RandomCall call;
    call.group = some_group();
    const auto& members = groups_[static_cast<std::size_t>(call.group)];
    const auto count = members.size();
    call.kind = static_cast<Kind>(below(6));
    call.size = static_cast<std::int64_t>(1 + below(4));
    call.is_double = below(4) == 0;
    call.root = static_cast<int>(below(std::min<std::uint64_t>(count, 3)));
    // The number of elements that each rank sends to each rank. In half of the calls, all are equal.
    std::vector<std::vector<std::int64_t>> splits(count, std::vector<std::int64_t>(count, call.size));
    if (below(2) == 0) {
      for (auto& row : splits) {
        for (auto& split : row) split = static_cast<std::int64_t>(below(3));
      }
    }
    for (std::size_t place = 0; place < count; ++place) {
      call.sent = splits[place];
      call.expected.clear();
      for (const auto& row : splits) call.expected.push_back(row[place]);
      call.payload = below(3) == 0 ? "weights" : "";
      of(members[place]).push_back(call);
    }
  }

  void add_message() {
    RandomCall call;
    call.group = some_group();
    const auto& members = groups_[static_cast<std::size_t>(call.group)];
    if (members.size() < 2) return;
    const auto from = below(members.size());
    const auto to = (from + 1 + below(members.size() - 1)) % members.size();
    call.size = static_cast<std::int64_t>(1 + below(3));
    call.tag = static_cast<int>(below(2));
    call.kind = Kind::send;
    call.peer = static_cast<int>(to);
    of(members[from]).push_back(call);
    call.kind = below(3) == 0 ? Kind::recv_any : Kind::recv;
    call.peer = static_cast<int>(from);
    of(members[to]).push_back(call);
  }

  void make_mistakes() {
    for (auto left = 1 + below(3); left > 0; --left) {
      auto& calls = of(static_cast<int>(below(program_.calls.size())));
      if (!calls.empty()) make_mistake(calls, below(calls.size()));
    }
  }

  void make_mistake(std::vector<RandomCall>& calls, std::size_t at) {
    auto& call = calls[at];
    switch (below(11)) {
      case 0:
        calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(at));
        return;
      case 1:
        std::swap(call, calls[below(calls.size())]);
        return;
      case 2: {
        auto again = call;
        again.name.clear();  // a second group with this name would be refused
        calls.insert(calls.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(again));
        return;
      }
      case 3:
        call.size += 1;
        return;
      case 4:
        call.is_double = !call.is_double;
        return;
      case 5:
        call.root = call.root == 0 ? 1 : 0;
        return;
      case 6:
        call.tag += 1;
        return;
      case 7:
        call.payload = "biases";
        return;
      case 8:
        if (!call.sent.empty()) call.sent[below(call.sent.size())] += 1;
        return;
      case 9:
        if (call.members.size() > 1) call.members.pop_back();
        return;
      default:
        if (call.kind < Kind::barrier) call.kind = static_cast<Kind>(below(6));
        return;
    }
  }

  std::mt19937_64 random_;
  RandomProgram program_;
  std::vector<std::vector<int>> groups_;  // the ranks of each group
};

at::Tensor tensor_of(const RandomCall& call, std::int64_t times = 1) {
  return at::zeros({call.size * times}, call.is_double ? at::kDouble : at::kFloat);
}

std::int64_t sum(const std::vector<std::int64_t>& splits) {
  return std::accumulate(splits.begin(), splits.end(), std::int64_t{0});
}

c10::intrusive_ptr<c10d::Work> alltoall(const RandomCall& call, comm::DescribedBackend& backend) {
  auto sent = call.sent, expected = call.expected;
  sent.resize(static_cast<std::size_t>(backend.getSize()), 1);
  expected.resize(static_cast<std::size_t>(backend.getSize()), 1);
  const auto dtype = call.is_double ? at::kDouble : at::kFloat;
  auto input = at::zeros({sum(sent)}, dtype), output = at::zeros({sum(expected)}, dtype);
  return backend.alltoall_base(output, input, expected, sent, {});
}

}  // namespace

RandomProgram random_program(std::uint64_t seed) { return Author(seed).write(); }

c10::intrusive_ptr<c10d::Work> make(const RandomCall& call, comm::DescribedBackend& backend) {
  const int size = backend.getSize();
  std::vector<at::Tensor> tensors{tensor_of(call)};
  if (!call.payload.empty()) backend.name_payload(tensors[0], call.payload);
  const c10d::ReduceOp::RedOpType reductions[] = {c10d::ReduceOp::SUM, c10d::ReduceOp::MAX, c10d::ReduceOp::MIN};
  switch (call.kind) {
    case Kind::allreduce: {
      c10d::AllreduceOptions options;
      options.reduceOp = reductions[call.root % 3];
      return backend.allreduce(tensors, options);
    }
    case Kind::broadcast: {
      c10d::BroadcastOptions options;
      options.rootRank = call.root % size;
      return backend.broadcast(tensors, options);
    }
    case Kind::allgather: {
      auto output = tensor_of(call, size);
      return backend._allgather_base(output, tensors[0], {});
    }
    case Kind::reduce_scatter: {
      auto input = tensor_of(call, size);
      c10d::ReduceScatterOptions options;
      options.reduceOp = reductions[call.root % 3];
      return backend._reduce_scatter_base(tensors[0], input, options);
    }
    case Kind::alltoall:
      return alltoall(call, backend);
    case Kind::send:
      return backend.send(tensors, call.peer % size, call.tag);
    case Kind::recv:
      return backend.recv(tensors, call.peer % size, call.tag);
    case Kind::recv_any:
      return backend.recvAnysource(tensors, call.tag);
    default:
      return backend.barrier({});
  }
}

}  // namespace rehearse::real
