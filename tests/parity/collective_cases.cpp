// SPDX-License-Identifier: BSD-3-Clause
// Calls that move values without computing. They vary the dtype, the root and the tag, and have even or uneven sizes.
// Also barriers, and several calls in flight at once.
#include <numeric>

#include "parity_case.h"

namespace rehearse::parity {
namespace {

constexpr at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kChar,
                                     at::kByte,  at::kInt,    at::kLong, at::kBool};

Tensors empties(const at::Tensor& like, int count) {
  Tensors outputs;
  for (int i = 0; i < count; ++i) outputs.push_back(at::zeros_like(like));
  return outputs;
}

Tensors broadcast_from_each(const ProcessGroup& group, at::IntArrayRef sizes, at::ScalarType dtype) {
  Tensors all;
  for (int root = 0; root < group->getSize(); ++root) {
    Tensors tensors{exact(sizes, dtype, group->getRank())};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    group->broadcast(tensors, options)->wait();
    all.push_back(tensors[0]);
  }
  return all;
}

Tensors allgather(const ProcessGroup& group, at::Tensor input) {
  Tensors inputs{std::move(input)};
  std::vector<Tensors> outputs{empties(inputs[0], group->getSize())};
  group->allgather(outputs, inputs)->wait();
  return outputs[0];
}

Tensors allgather_base(const ProcessGroup& group, at::Tensor input) {
  auto output = at::zeros({input.size(0) * group->getSize()}, input.options());
  group->_allgather_base(output, input)->wait();
  return {output};
}

Tensors gather_to_each(const ProcessGroup& group, const at::Tensor& input) {
  Tensors all;
  for (int root = 0; root < group->getSize(); ++root) {
    Tensors inputs{input};
    std::vector<Tensors> outputs;
    if (group->getRank() == root) outputs.push_back(empties(input, group->getSize()));
    c10d::GatherOptions options;
    options.rootRank = root;
    group->gather(outputs, inputs, options)->wait();
    if (!outputs.empty()) all.insert(all.end(), outputs[0].begin(), outputs[0].end());
  }
  return all;
}

Tensors scatter_from_each(const ProcessGroup& group, at::IntArrayRef sizes, at::ScalarType dtype) {
  Tensors all;
  for (int root = 0; root < group->getSize(); ++root) {
    Tensors outputs{at::zeros(sizes, dtype)};
    std::vector<Tensors> inputs;
    if (group->getRank() == root) {
      inputs.emplace_back();
      for (int to = 0; to < group->getSize(); ++to) inputs[0].push_back(exact(sizes, dtype, 10 * root + to));
    }
    c10d::ScatterOptions options;
    options.rootRank = root;
    group->scatter(outputs, inputs, options)->wait();
    all.push_back(outputs[0]);
  }
  return all;
}

// Rank r sends rows(r, to) rows of three numbers to rank `to`.
Tensors alltoall(const ProcessGroup& group, at::ScalarType dtype, const std::function<std::int64_t(int, int)>& rows,
                 bool say_splits) {
  std::vector<std::int64_t> in, out;
  for (int other = 0; other < group->getSize(); ++other) {
    in.push_back(rows(group->getRank(), other));
    out.push_back(rows(other, group->getRank()));
  }
  auto input = exact({std::accumulate(in.begin(), in.end(), std::int64_t{0}), 3}, dtype, group->getRank());
  auto output = at::zeros({std::accumulate(out.begin(), out.end(), std::int64_t{0}), 3}, dtype);
  if (!say_splits) in.clear(), out.clear();
  group->alltoall_base(output, input, out, in)->wait();
  return {output};
}

Tensors around_the_ring(const ProcessGroup& group, at::ScalarType dtype, std::int64_t size, int tag) {
  const int rank = group->getRank(), ranks = group->getSize();
  Tensors sent{exact({size}, dtype, rank)}, received{at::zeros({size}, dtype)};
  const auto send = group->send(sent, (rank + 1) % ranks, tag);
  const auto recv = group->recv(received, (rank + ranks - 1) % ranks, tag);
  send->wait();
  recv->wait();
  return received;
}

// The receiver's tensor is larger than the message. The rest of the tensor must stay unchanged.
Tensors shorter_message(const ProcessGroup& group, std::int64_t sent_size, std::int64_t size) {
  const int rank = group->getRank();
  Tensors tensors;
  if (rank == 0) tensors = {exact({sent_size}, at::kFloat, 1)};
  if (rank == 1) tensors = {at::full({size}, -7.0f)};
  if (rank == 0) group->send(tensors, 1, 3)->wait();
  if (rank == 1) group->recv(tensors, 0, 3)->wait();
  return tensors;
}

// Rank 0 receives from any rank. Returns the messages in order of sender.
Tensors from_anybody(const ProcessGroup& group) {
  if (group->getRank() > 0) {
    Tensors sent{exact({4}, at::kLong, group->getRank())};
    group->send(sent, 0, 9)->wait();
    return {};
  }
  Tensors by_sender(static_cast<std::size_t>(group->getSize()), at::zeros({4}, at::kLong));
  for (int i = 1; i < group->getSize(); ++i) {
    Tensors received{at::zeros({4}, at::kLong)};
    const auto work = group->recvAnysource(received, 9);
    work->wait();
    by_sender.at(static_cast<std::size_t>(work->sourceRank())) = received[0];
  }
  return by_sender;
}

Tensors overlapping(const ProcessGroup& group) {
  Tensors a{exact({100}, at::kFloat, group->getRank())}, b{exact({3}, at::kLong, group->getRank())};
  const auto first = group->allreduce(a);
  const auto second = group->allreduce(b);
  const auto third = group->barrier();
  third->wait();
  second->wait();
  first->wait();
  return {a[0], b[0]};
}

void add_moves(std::vector<Case>& cases, at::ScalarType dtype) {
  const std::string of = std::string(" ") + toString(dtype);
  cases.push_back({"broadcast from each" + of,
                   [=](const ProcessGroup& group) { return broadcast_from_each(group, {3, 5}, dtype); }});
  for (const std::int64_t size : {1, 41}) {
    const auto input = [=](const ProcessGroup& group) { return exact({size}, dtype, group->getRank()); };
    const std::string name = of + ' ' + std::to_string(size);
    cases.push_back({"allgather" + name, [=](const ProcessGroup& group) { return allgather(group, input(group)); }});
    cases.push_back(
        {"_allgather_base" + name, [=](const ProcessGroup& group) { return allgather_base(group, input(group)); }});
    cases.push_back(
        {"gather to each" + name, [=](const ProcessGroup& group) { return gather_to_each(group, input(group)); }});
    cases.push_back({"scatter from each" + name,
                     [=](const ProcessGroup& group) { return scatter_from_each(group, {size}, dtype); }});
    cases.push_back(
        {"send and recv" + name, [=](const ProcessGroup& group) { return around_the_ring(group, dtype, size, 5); }});
  }
  const auto even = [](int, int) { return std::int64_t{2}; };
  const auto uneven = [](int from, int to) { return std::int64_t{(from * 3 + to * 2) % 4}; };
  const auto to_the_first = [](int, int to) { return std::int64_t{to == 0 ? 4 : 0}; };
  cases.push_back({"alltoall_base" + of, [=](const ProcessGroup& g) { return alltoall(g, dtype, even, false); }});
  cases.push_back({"alltoall_base even" + of, [=](const ProcessGroup& g) { return alltoall(g, dtype, even, true); }});
  cases.push_back(
      {"alltoall_base uneven" + of, [=](const ProcessGroup& g) { return alltoall(g, dtype, uneven, true); }});
  cases.push_back(
      {"alltoall_base to 0" + of, [=](const ProcessGroup& g) { return alltoall(g, dtype, to_the_first, true); }});
}

}  // namespace

std::vector<Case> collective_cases() {
  std::vector<Case> cases;
  for (const auto dtype : kTypes) add_moves(cases, dtype);
  for (const std::int64_t sent : {0, 1, 5, 4999}) {
    cases.push_back({"recv of more than " + std::to_string(sent),
                     [=](const ProcessGroup& group) { return shorter_message(group, sent, 5000); }});
  }
  cases.push_back({"recvAnysource", from_anybody});
  cases.push_back({"overlapping", overlapping});
  cases.push_back({"barrier", [](const ProcessGroup& group) { return group->barrier()->wait(), Tensors{}; }});
  cases.push_back(
      {"monitoredBarrier", [](const ProcessGroup& group) { return group->monitoredBarrier({}, true), Tensors{}; }});
  return cases;
}

}  // namespace rehearse::parity
