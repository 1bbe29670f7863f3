// SPDX-License-Identifier: BSD-3-Clause
// Calls with several tensors, object collectives with payloads of different sizes, functional collectives with their
// gradients, and the sparse cases.
#include <limits>

#include <rehearse/comm/functional.h>
#include <rehearse/comm/object_collectives.h>

#include "parity_case.h"

namespace rehearse::parity {
namespace {

using Op = c10d::ReduceOp::RedOpType;
using Group = const ProcessGroup&;

// Tensors of different sizes, like the buckets of a model.
Tensors several(Group group, at::ScalarType dtype, std::int64_t rows) {
  Tensors tensors;
  for (const std::int64_t columns : {1, 7, 300}) tensors.push_back(exact({rows, columns}, dtype, group->getRank()));
  return tensors;
}

Tensors allreduce_coalesced(Group group, Tensors tensors, Op op) {
  c10d::AllreduceCoalescedOptions options;
  options.reduceOp = op;
  group->allreduce_coalesced(tensors, options)->wait();
  return tensors;
}

Tensors allgather_into_coalesced(Group group, Tensors inputs) {
  Tensors outputs;
  for (const auto& input : inputs) {
    outputs.push_back(at::zeros({input.size(0) * group->getSize(), input.size(1)}, input.options()));
  }
  group->allgather_into_tensor_coalesced(outputs, inputs)->wait();
  return outputs;
}

Tensors reduce_scatter_coalesced(Group group, Tensors inputs, Op op) {
  Tensors outputs;
  for (const auto& input : inputs) {
    outputs.push_back(at::zeros({input.size(0) / group->getSize(), input.size(1)}, input.options()));
  }
  c10d::ReduceScatterOptions options;
  options.reduceOp = op;
  group->reduce_scatter_tensor_coalesced(outputs, inputs, options)->wait();
  return outputs;
}

at::Tensor bytes_of(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::copy(text.begin(), text.end(), static_cast<char*>(bytes.mutable_data_ptr()));
  return bytes;
}

// Runs all four object collectives, from a root that is not 0.
Tensors objects(Group group, std::size_t size_step) {
  const int rank = group->getRank(), root = group->getSize() - 1;
  const std::string mine(static_cast<std::size_t>(rank) * size_step, static_cast<char>('a' + rank));
  const auto all = comm::all_gather_object(group, mine);
  std::vector<std::string> got = all;
  for (const auto& payload : comm::gather_object(group, mine, root)) got.push_back(payload);
  got.push_back(comm::broadcast_object(group, mine, root));
  got.push_back(comm::scatter_object(group, rank == root ? all : std::vector<std::string>(), root));
  Tensors values;
  for (const auto& payload : got) values.push_back(bytes_of(payload));
  return values;
}

// with_gradient() returns a functional collective's result, and the gradient of a weighted sum of this result.
using Collective = std::function<at::Tensor(const at::Tensor& input, Group group)>;
Tensors with_gradient(Group group, const Collective& collective) {
  const auto input = exact({2 * group->getSize(), group->getSize()}, at::kDouble, group->getRank()).requires_grad_();
  const auto result = collective(input, group);
  (result * exact(result.sizes(), at::kDouble, group->getRank() + 1)).sum().backward();
  return {result.detach(), input.grad()};
}

void add_functional(std::vector<Case>& cases) {
  const auto add = [&](const char* name, const Collective& collective) {
    cases.push_back({name, [=](Group group) { return with_gradient(group, collective); }});
  };
  add("functional all_reduce", [](const at::Tensor& x, Group g) { return functional::all_reduce(x, g); });
  add("functional broadcast", [](const at::Tensor& x, Group g) { return functional::broadcast(x, g, 1); });
  add("functional all_gather along 0",
      [](const at::Tensor& x, Group g) { return functional::all_gather_tensor(x, g); });
  add("functional all_gather along 1",
      [](const at::Tensor& x, Group g) { return functional::all_gather_tensor(x, g, 1); });
  add("functional reduce_scatter along 0",
      [](const at::Tensor& x, Group g) { return functional::reduce_scatter_tensor(x, g); });
  add("functional reduce_scatter along 1",
      [](const at::Tensor& x, Group g) { return functional::reduce_scatter_tensor(x, g, "sum", 1); });
  add("functional all_to_all", [](const at::Tensor& x, Group g) { return functional::all_to_all_single(x, g); });
}

}  // namespace

std::vector<Case> composed_cases() {
  std::vector<Case> cases;
  for (const auto dtype : {at::kFloat, at::kHalf, at::kInt, at::kLong}) {
    const std::string of = std::string(" ") + toString(dtype);
    for (const Op op : {Op::SUM, Op::MAX}) {
      const std::string by = of + (op == Op::SUM ? " sum" : " max");
      cases.push_back(
          {"allreduce_coalesced" + by, [=](Group g) { return allreduce_coalesced(g, several(g, dtype, 2), op); }});
      cases.push_back({"reduce_scatter_tensor_coalesced" + by,
                       [=](Group g) { return reduce_scatter_coalesced(g, several(g, dtype, 2 * g->getSize()), op); }});
    }
    cases.push_back({"allreduce_coalesced of a tensor twice, and of views of one" + of, [=](Group g) {
                       const auto tensor = exact({5}, dtype, g->getRank()), base = exact({3, 2}, dtype, g->getRank());
                       allreduce_coalesced(g, {tensor, tensor}, Op::SUM);
                       allreduce_coalesced(g, {base.narrow(0, 0, 2), base.narrow(0, 1, 2), base.t()}, Op::SUM);
                       return Tensors{tensor, base};
                     }});
    cases.push_back({"allgather_into_tensor_coalesced" + of,
                     [=](Group g) { return allgather_into_coalesced(g, several(g, dtype, 3)); }});
  }
  cases.push_back({"allreduce_coalesced of NaN", [](Group g) {
                     auto tensors = several(g, at::kFloat, 2);
                     const auto period = g->getRank() + 2;
                     for (const auto& tensor : tensors) {
                       const auto is_nan = at::remainder(at::arange(tensor.numel()), period).eq(0).view_as(tensor);
                       tensor.masked_fill_(is_nan, std::numeric_limits<double>::quiet_NaN());
                     }
                     return allreduce_coalesced(g, tensors, Op::MAX);
                   }});
  for (auto& each : sparse_cases()) cases.push_back(std::move(each));
  for (const std::size_t step : {0, 1, 100'000}) {
    cases.push_back({"objects growing by " + std::to_string(step), [=](Group g) { return objects(g, step); }});
  }
  add_functional(cases);
  return cases;
}

}  // namespace rehearse::parity
