// SPDX-License-Identifier: BSD-3-Clause
// All-reduces of sparse tensors. Gloo coalesces each rank's tensor and then adds the tensors one by one, in rank order.
// We do the same, to the same bits. coalesce() adds values of equal indices in the order that an unstable sort of the
// indices leaves. For up to 16 values, that is the order of positions, which is our order, too. For more values, it may
// be any order, so only exact sums are equal.
#include "parity_case.h"

namespace rehearse::parity {
namespace {

constexpr std::int64_t kStableMax = 16;  // up to this many elements, std::sort is an insertion sort

// `values` in rows that repeat many times, in a different order on each rank.
at::Tensor repeated_rows(const at::Tensor& values, std::int64_t rows, int rank) {
  const auto index = (at::arange(values.size(0), at::kLong) * (2 * rank + 7) + rank).remainder(rows);
  return at::sparse_coo_tensor(index.unsqueeze(0), values, {rows, values.size(1)});
}

Tensors allreduce(const ProcessGroup& group, at::Tensor tensor) {
  Tensors tensors{std::move(tensor)};
  group->allreduce(tensors)->wait();
  const auto sum = tensors[0].coalesce();
  return {sum.indices(), sum.values(), sum.to_dense()};
}

// Rank r has rows r, r + 1 and, twice, 2r.
Tensors allreduce_exact(const ProcessGroup& group, at::ScalarType dtype) {
  const int rank = group->getRank();
  const auto rows = at::tensor({rank, rank + 1, 2 * rank, 2 * rank}, at::kLong).unsqueeze(0);
  return allreduce(group, at::sparse_coo_tensor(rows, exact({4, 3}, dtype, rank), {12, 3}));
}

}  // namespace

std::vector<Case> sparse_cases() {
  std::vector<Case> cases;
  const auto add = [&](std::string name, at::ScalarType dtype, const auto& tensor_of) {
    cases.push_back({"allreduce of sparse, " + name + toString(dtype),
                     [=](const ProcessGroup& group) { return allreduce(group, tensor_of(group->getRank())); }});
  };
  for (const auto dtype : {at::kFloat, at::kDouble, at::kLong, at::kHalf, at::kBFloat16}) {
    cases.push_back({std::string("allreduce of sparse ") + toString(dtype),
                     [=](const ProcessGroup& group) { return allreduce_exact(group, dtype); },
                     dtype == at::kHalf ? Expected::gloo_lacks : Expected::equal_bits});
  }
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    add("rows repeated, all bits in use, ", dtype,
        [=](int rank) { return repeated_rows(rough({kStableMax - rank, 3}, dtype, rank), 3, rank); });
    add("coalesced, all bits in use, ", dtype,
        [=](int rank) { return repeated_rows(rough({300 + rank, 3}, dtype, rank), 70, rank).coalesce(); });
    add("rows often repeated, ", dtype,
        [=](int rank) { return repeated_rows(exact({300 + rank, 3}, dtype, rank), 20, rank); });
  }
  return cases;
}

}  // namespace rehearse::parity
