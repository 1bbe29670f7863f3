// SPDX-License-Identifier: BSD-3-Clause
// Reductions: every op and dtype, lengths around gloo's segments, and sums, minima and maxima that depend on the order.
#include <algorithm>
#include <limits>

#include <rehearse_internal/comm/operation.h>

#include "parity_case.h"

namespace rehearse::parity {
namespace {

using Op = c10d::ReduceOp::RedOpType;
using Group = const ProcessGroup&;

constexpr at::ScalarType kGlooTypes[] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16,
                                         at::kChar,  at::kByte,   at::kInt,  at::kLong};
constexpr Op kArithmetic[] = {Op::SUM, Op::PRODUCT, Op::MIN, Op::MAX};
constexpr Op kBitwise[] = {Op::BAND, Op::BOR, Op::BXOR};

std::string name_of(std::string_view call, Op op, at::ScalarType dtype, std::int64_t size) {
  return std::string(call) + ' ' + std::string(comm::name_of(op)) + ' ' + toString(dtype) + ' ' + std::to_string(size);
}

// Products of five numbers of exact() could overflow int8.
at::Tensor operand(Op op, std::int64_t size, at::ScalarType dtype, int rank) {
  auto numbers = exact({size}, dtype, rank);
  return op == Op::PRODUCT ? at::remainder(numbers, 2) + 1 : numbers;
}

Tensors allreduce(const ProcessGroup& group, at::Tensor tensor, Op op) {
  Tensors tensors{std::move(tensor)};
  c10d::AllreduceOptions options;
  options.reduceOp = op;
  group->allreduce(tensors, options)->wait();
  return tensors;
}

// Returns the root's tensor alone, because gloo leaves partial sums in the tensors of the other ranks.
Tensors reduce(const ProcessGroup& group, at::Tensor tensor, Op op, int root) {
  Tensors tensors{std::move(tensor)};
  c10d::ReduceOptions options;
  options.reduceOp = op;
  options.rootRank = root;
  group->reduce(tensors, options)->wait();
  return group->getRank() == root ? tensors : Tensors{};
}

Tensors reduce_scatter(const ProcessGroup& group, const at::Tensor& input, Op op) {
  Tensors outputs{at::zeros({input.size(0) / group->getSize()}, input.options())};
  std::vector<Tensors> inputs{input.chunk(group->getSize())};
  c10d::ReduceScatterOptions options;
  options.reduceOp = op;
  group->reduce_scatter(outputs, inputs, options)->wait();
  return outputs;
}

Tensors reduce_scatter_base(const ProcessGroup& group, at::Tensor input, Op op) {
  auto output = at::zeros({input.size(0) / group->getSize()}, input.options());
  c10d::ReduceScatterOptions options;
  options.reduceOp = op;
  group->_reduce_scatter_base(output, input, options)->wait();
  return {output};
}

void add_all_reduces(std::vector<Case>& cases, Op op, at::ScalarType dtype, Expected expected = Expected::equal_bits) {
  for (const std::int64_t size : {0, 1, 5, 257, 5000}) {
    cases.push_back(
        {name_of("allreduce", op, dtype, size),
         [=](const ProcessGroup& group) { return allreduce(group, operand(op, size, dtype, group->getRank()), op); },
         expected});
  }
}

void add_rooted(std::vector<Case>& cases, Op op, at::ScalarType dtype) {
  cases.push_back({name_of("reduce to each", op, dtype, 33), [=](const ProcessGroup& group) {
                     Tensors all;
                     for (int root = 0; root < group->getSize(); ++root) {
                       for (auto& one : reduce(group, operand(op, 33, dtype, group->getRank()), op, root)) {
                         all.push_back(one);
                       }
                     }
                     return all;
                   }});
}

void add_scattered(std::vector<Case>& cases, Op op, at::ScalarType dtype) {
  for (const std::int64_t size : {1, 34}) {
    const auto input = [=](const ProcessGroup& group) {
      return operand(op, size * group->getSize(), dtype, group->getRank());
    };
    cases.push_back({name_of("reduce_scatter", op, dtype, size),
                     [=](const ProcessGroup& group) { return reduce_scatter(group, input(group), op); }});
    cases.push_back({name_of("_reduce_scatter_base", op, dtype, size),
                     [=](const ProcessGroup& group) { return reduce_scatter_base(group, input(group), op); }});
  }
}

void add_rough(std::vector<Case>& cases, at::ScalarType dtype) {
  for (const Op op : {Op::SUM, Op::PRODUCT, Op::MIN, Op::MAX}) {
    const auto expected = op == Op::SUM || op == Op::PRODUCT ? Expected::rounding : Expected::equal_bits;
    for (const std::int64_t size : {3, 1000}) {
      cases.push_back(
          {name_of("allreduce rough", op, dtype, size),
           [=](const ProcessGroup& group) { return allreduce(group, rough({size}, dtype, group->getRank()), op); },
           expected});
    }
  }
}

// Puts NaN into a rank's numbers. If there are enough numbers, each combination of ranks has NaN at some element. If
// `only_on` is not negative, only that rank has NaN, at every element.
at::Tensor with_nan(at::Tensor numbers, int rank, int only_on) {
  constexpr std::int64_t kPeriods[] = {2, 3, 5, 7, 11};
  const std::int64_t period = only_on < 0 ? kPeriods[rank] : 1;
  if (only_on < 0 || only_on == rank) {
    numbers.slice(0, std::min(rank % period, numbers.numel()), std::nullopt, period)
        .fill_(std::numeric_limits<double>::quiet_NaN());
  }
  return numbers;
}

// Long enough for more than two of gloo's segments of 1 MiB per rank.
Tensors long_with_nan(Group group, const std::function<Tensors(at::Tensor)>& make) {
  const auto size = (std::int64_t{2} * group->getSize() << 17) + 1001;
  const int rank = group->getRank();
  auto numbers = at::arange(size, at::kDouble).mul_(rank % 2 == 0 ? 1 : -1);
  Tensors all;
  for (const auto& one : make(with_nan(std::move(numbers), rank, -1))) all.push_back(one.slice(0, 0, std::nullopt, 7));
  return all;
}

// A rank's place in gloo's ring decides whether its NaN stays or is lost.
void add_nan(std::vector<Case>& cases, Op op, at::ScalarType dtype) {
  const auto add = [&](const char* call, std::int64_t size, const std::function<Tensors(Group, at::Tensor)>& make) {
    cases.push_back({name_of(call, op, dtype, size), [=](Group group) {
                       Tensors all;
                       for (int only_on = -1; only_on < (size <= 2 ? group->getSize() : 0); ++only_on) {
                         const int rank = group->getRank();
                         for (auto& one : make(group, with_nan(rough({size}, dtype, rank), rank, only_on))) {
                           all.push_back(one);
                         }
                       }
                       return all;
                     }});
  };
  const auto reduce_to_each = [=](Group group, const at::Tensor& input) {
    Tensors all;
    for (int root = 0; root < group->getSize(); ++root) {
      for (auto& one : reduce(group, input.clone(), op, root)) all.push_back(one);
    }
    return all;
  };
  const auto all_reduce = [=](Group group, at::Tensor input) { return allreduce(group, std::move(input), op); };
  for (const std::int64_t size : {1, 2, 5, 31, 5003}) add("allreduce of NaN", size, all_reduce);
  for (const std::int64_t size : {2, 31, 5003}) add("reduce of NaN to each", size, reduce_to_each);
  // The sizes are multiples of every number of ranks.
  for (const std::int64_t size : {60, 4620}) {
    add("reduce_scatter of NaN", size,
        [=](Group group, const at::Tensor& input) { return reduce_scatter(group, input, op); });
    add("_reduce_scatter_base of NaN", size,
        [=](Group group, at::Tensor input) { return reduce_scatter_base(group, std::move(input), op); });
  }
  if (dtype != at::kDouble || op != Op::MAX) return;
  cases.push_back({"long allreduce of NaN", [=](Group group) {
                     return long_with_nan(group, [&](at::Tensor input) { return all_reduce(group, std::move(input)); });
                   }});
  cases.push_back({"long reduce of NaN", [=](Group group) {
                     return long_with_nan(group, [&](at::Tensor input) {
                       return reduce(group, std::move(input), op, group->getSize() - 1);
                     });
                   }});
}

}  // namespace

std::vector<Case> reduction_cases() {
  std::vector<Case> cases;
  for (const auto dtype : kGlooTypes) {
    std::vector<Op> ops(std::begin(kArithmetic), std::end(kArithmetic));
    if (at::isIntegralType(dtype, false)) ops.insert(ops.end(), std::begin(kBitwise), std::end(kBitwise));
    for (const Op op : ops) {
      add_all_reduces(cases, op, dtype);
      add_rooted(cases, op, dtype);
      add_scattered(cases, op, dtype);
    }
    if (at::isFloatingType(dtype)) {
      add_all_reduces(cases, Op::AVG, dtype);
      add_rough(cases, dtype);
      for (const Op op : {Op::MIN, Op::MAX}) add_nan(cases, op, dtype);
    }
  }
  for (const auto dtype : {at::kComplexFloat, at::kComplexDouble}) {
    add_all_reduces(cases, Op::SUM, dtype);
    // For the average, gloo divides by a complex number, but we divide by a real number.
    add_all_reduces(cases, Op::AVG, dtype, Expected::rounding);
  }
  return cases;
}

}  // namespace rehearse::parity
