// SPDX-License-Identifier: BSD-3-Clause
// Calls that gloo refuses, which we must refuse, too. A few calls must work.
#include <rehearse_internal/libtorch/version.h>

#include "kit/pre_mul_sum.h"
#include "parity_case.h"

namespace rehearse::parity {
namespace {

using Op = c10d::ReduceOp::RedOpType;

Tensors allreduce(const ProcessGroup& group, Tensors tensors, const c10d::ReduceOp& op = Op::SUM) {
  c10d::AllreduceOptions options;
  options.reduceOp = op;
  group->allreduce(tensors, options)->wait();
  return tensors;
}

Tensors broadcast(const ProcessGroup& group, Tensors tensors, int root) {
  c10d::BroadcastOptions options;
  options.rootRank = root;
  group->broadcast(tensors, options)->wait();
  return tensors;
}

Tensors allgather(const ProcessGroup& group, std::vector<Tensors> outputs, Tensors inputs) {
  group->allgather(outputs, inputs)->wait();
  return outputs[0];
}

Tensors alltoall(const ProcessGroup& group, at::Tensor output, at::Tensor input, std::vector<std::int64_t> out,
                 std::vector<std::int64_t> in) {
  group->alltoall_base(output, input, out, in)->wait();
  return {output};
}

Tensors some(const ProcessGroup& group, int count) {
  Tensors tensors;
  for (int i = 0; i < count; ++i) tensors.push_back(exact({4}, at::kFloat, group->getRank()));
  return tensors;
}

at::Tensor one(const ProcessGroup& group) { return exact({4}, at::kFloat, group->getRank()); }

}  // namespace

std::vector<Case> refusal_cases() {
  using Group = const ProcessGroup&;
  return {
      {"allreduce of no tensor", [](Group g) { return allreduce(g, {}); }},
      {"allreduce bitwise of floats", [](Group g) { return allreduce(g, some(g, 1), Op::BAND); }},
      {"allreduce of int16", [](Group g) { return allreduce(g, {one(g).to(at::kShort)}); }},
      {"allreduce avg of integers", [](Group g) { return allreduce(g, {one(g).to(at::kLong)}, Op::AVG); },
       Expected::gloo_lacks},
      {"allreduce max of complex", [](Group g) { return allreduce(g, {one(g).to(at::kComplexFloat)}, Op::MAX); }},
      {"allreduce premul_sum", [](Group g) { return allreduce(g, some(g, 1), rehearse::test::pre_mul_sum(2.0)); },
       Expected::gloo_lacks},
      {"allreduce of two dtypes", [](Group g) { return allreduce(g, {one(g), one(g).to(at::kLong)}); }},
      {"allreduce of a transposed tensor",
       [](Group g) { return allreduce(g, {exact({4, 6}, at::kFloat, g->getRank()).t()}); }},
      {"reduce to rank n",
       [](Group g) {
         Tensors tensors = some(g, 1);
         c10d::ReduceOptions options;
         options.rootRank = g->getSize();
         return g->reduce(tensors, options)->wait(), Tensors{};
       }},
      // Each rank is a root here, because a single rank that refused would leave the others waiting.
      {"gather into too few",
       [](Group g) {
         Tensors inputs = some(g, 1);
         std::vector<Tensors> outputs{some(g, g->getSize() - 1)};
         c10d::GatherOptions options;
         options.rootRank = g->getRank();
         return g->gather(outputs, inputs, options)->wait(), Tensors{};
       }},
      {"scatter of nothing",
       [](Group g) {
         Tensors outputs = some(g, 1);
         std::vector<Tensors> inputs;
         c10d::ScatterOptions options;
         options.rootRank = g->getRank();
         return g->scatter(outputs, inputs, options)->wait(), Tensors{};
       }},
      {"alltoall of lists",
       [](Group g) {
         Tensors inputs = some(g, g->getSize()), outputs = some(g, g->getSize());
         return g->alltoall(outputs, inputs)->wait(), outputs;
       },
       libtorch::Minors{.until = 11}.contain(libtorch::kMinor) ? Expected::gloo_lacks : Expected::equal_bits},
      {"broadcast of no tensor", [](Group g) { return broadcast(g, {}, 0); }},
      {"broadcast from rank -1", [](Group g) { return broadcast(g, some(g, 1), -1); }},
      {"broadcast from rank n", [](Group g) { return broadcast(g, some(g, 1), g->getSize()); }},
      {"allgather of no tensor", [](Group g) { return allgather(g, {some(g, g->getSize())}, {}); }},
      {"allgather into too few", [](Group g) { return allgather(g, {some(g, g->getSize() - 1)}, some(g, 1)); }},
      {"allgather into too many", [](Group g) { return allgather(g, {some(g, g->getSize() + 1)}, some(g, 1)); }},
      {"allgather into other dtypes",
       [](Group g) {
         Tensors outputs;
         for (int r = 0; r < g->getSize(); ++r) outputs.push_back(at::zeros({4}, at::kLong));
         return allgather(g, {outputs}, some(g, 1));
       }},
      {"alltoall_base with splits that do not add up",
       [](Group g) {
         const std::vector<std::int64_t> splits(static_cast<std::size_t>(g->getSize()), 3);
         return alltoall(g, at::zeros({4}), one(g), splits, splits);
       }},
      {"alltoall_base with too few splits", [](Group g) { return alltoall(g, at::zeros({4}), one(g), {4}, {4}); }},
      {"alltoall_base of a size that does not divide",
       [](Group g) { return alltoall(g, at::zeros({61}, at::kByte), at::zeros({61}, at::kByte), {}, {}); }},
      {"alltoall_base into another dtype",
       [](Group g) { return alltoall(g, at::zeros({60}, at::kLong), at::zeros({60}), {}, {}); }, Expected::gloo_is_lax},
      {"_allgather_base into a wrong size",
       [](Group g) {
         auto output = at::zeros({4 * g->getSize() + 1}), input = one(g);
         return g->_allgather_base(output, input)->wait(), Tensors{output};
       }},
      {"send to itself",
       [](Group g) {
         Tensors tensors = some(g, 1);
         return g->send(tensors, g->getRank(), 0)->wait(), Tensors{};
       }},
      {"send of two tensors",
       [](Group g) {
         Tensors tensors = some(g, 2);
         return g->send(tensors, (g->getRank() + 1) % g->getSize(), 0)->wait(), Tensors{};
       }},
      {"send with a negative tag",
       [](Group g) {
         Tensors tensors = some(g, 1);
         return g->send(tensors, (g->getRank() + 1) % g->getSize(), -1)->wait(), Tensors{};
       }},
      // The group still works after all refusals.
      {"allreduce afterwards", [](Group g) { return allreduce(g, some(g, 1)); }},
  };
}

}  // namespace rehearse::parity
