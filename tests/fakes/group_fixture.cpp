// SPDX-License-Identifier: BSD-3-Clause
#include "group_fixture.h"

#include <limits>

namespace rehearse::fakes::testing {

using Op = c10d::ReduceOp::RedOpType;

Calls::Calls(c10d::OpType type, int ranks) : operations(static_cast<std::size_t>(ranks)) {
  for (int r = 0; r < ranks; ++r) {
    operations[static_cast<std::size_t>(r)].type = type;
    pointers.push_back(&operations[static_cast<std::size_t>(r)]);
    group->ranks.push_back(r);
  }
  transfer.type = type;
  group->name = "test";
  transfer.group = group.get();
  transfer.calls = pointers;
}

void FabricTest::run(Calls& calls) {
  int rank = 0;
  for (comm::Operation& call : calls.operations) fabric.prepare(call, *calls.group, rank++);
  CountingCompletion done;
  fabric.launch(calls.transfer, done);
  EXPECT_EQ(done.launched, 1);
  EXPECT_EQ(done.count, 1);
}

at::Tensor random_tensor(at::IntArrayRef sizes, at::ScalarType dtype, int rank, bool special) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(rank) * 977 + 13);
  if (dtype == at::kBool) return at::randint(0, 2, sizes, generator, at::kLong).to(dtype);
  if (at::isIntegralType(dtype, false)) {
    // The numbers are so large that sums and products wrap. Numbers of types narrower than int64 may have any bit
    // pattern.
    return at::randint(std::numeric_limits<std::int64_t>::min() / 2, std::numeric_limits<std::int64_t>::max() / 2,
                       sizes, generator, at::kLong)
        .to(dtype);
  }
  const auto real = at::isComplexType(dtype) ? at::toRealValueType(dtype) : dtype;
  auto values = at::randn(sizes, generator, at::kDouble);
  if (special && values.numel() >= 16) {
    auto flat = values.view({-1});
    flat[1 + rank % 5].fill_(std::numeric_limits<double>::quiet_NaN());
    flat[7].fill_(rank % 2 == 0 ? std::numeric_limits<double>::infinity() : 1.0);
    flat[8].fill_(-0.0);
    flat[9].fill_(1e-7 * (rank + 1));  // subnormal in half
    flat[10].fill_(6e4);               // overflows half when summed
  }
  if (real == dtype) return values.to(dtype);
  return at::complex(values.to(real), at::randn(sizes, generator, at::kDouble).to(real));
}

namespace {

at::Tensor fold(const at::Tensor& a, const at::Tensor& b, Op op) {
  const bool is_bool = a.scalar_type() == at::kBool;
  switch (op) {
    case Op::PRODUCT:
      return is_bool ? at::logical_and(a, b) : at::mul(a, b);
    case Op::MIN:
      return is_bool ? at::logical_and(a, b) : at::minimum(a, b);
    case Op::MAX:
      return is_bool ? at::logical_or(a, b) : at::maximum(a, b);
    case Op::BAND:
      return at::bitwise_and(a, b);
    case Op::BOR:
      return at::bitwise_or(a, b);
    case Op::BXOR:
      return at::bitwise_xor(a, b);
    default:
      return is_bool ? at::logical_or(a, b) : at::add(a, b);
  }
}

// std::min(b, a) or std::max(b, a): if either is NaN, the result is b.
at::Tensor like_std(const at::Tensor& a, const at::Tensor& b, Op op) {
  const auto keeps_a = op == Op::MIN ? a.lt(b) : b.lt(a);
  return at::where(keeps_a, a, b);
}

// Reduces in the order of Gloo's ring. For chunk c, the order begins at rank c - 1, goes down to rank 0, continues at
// the last rank, and ends at rank c. Takes tensors of less than a megabyte per rank.
at::Tensor reduced_in_ring(const std::vector<at::Tensor>& inputs, Op op) {
  const auto ranks = static_cast<std::int64_t>(inputs.size());
  const std::int64_t count = inputs[0].numel();
  const std::int64_t chunk = 2 * ((count + 2 * ranks - 1) / (2 * ranks));
  std::vector<at::Tensor> chunks;
  for (std::int64_t c = 0; c * chunk < count; ++c) {
    const auto part = [&](std::int64_t rank) {
      const auto& input = inputs[static_cast<std::size_t>((rank + ranks) % ranks)];
      return input.flatten().narrow(0, c * chunk, std::min(chunk, count - c * chunk)).to(at::kDouble);
    };
    at::Tensor result = part(c - 1);
    for (std::int64_t step = 2; step <= ranks; ++step) result = like_std(result, part(c - step), op);
    chunks.push_back(result);
  }
  return (chunks.empty() ? inputs[0].flatten() : at::cat(chunks)).view(inputs[0].sizes()).to(inputs[0].scalar_type());
}

}  // namespace

at::Tensor reduced(const std::vector<at::Tensor>& inputs, Op op, const std::vector<double>& factors) {
  const auto dtype = inputs[0].scalar_type();
  if (at::isComplexType(dtype)) {
    std::vector<at::Tensor> parts;
    for (const auto& input : inputs) parts.push_back(at::view_as_real(input));
    return at::view_as_complex(reduced(parts, op, factors));
  }
  if (at::isFloatingType(dtype) && (op == Op::MIN || op == Op::MAX)) return reduced_in_ring(inputs, op);
  const bool narrow = at::isFloatingType(dtype) && dtype != at::kFloat && dtype != at::kDouble;
  at::Tensor result;
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    auto value = narrow ? inputs[r].to(at::kFloat) : inputs[r].clone();
    if (!factors.empty()) value = value * at::scalar_tensor(factors[r], at::kDouble).to(dtype).to(value.scalar_type());
    result = r == 0 ? value : fold(result, value, op);
  }
  if (op == Op::AVG) {
    const auto n = static_cast<std::int64_t>(inputs.size());
    result = result.is_floating_point() ? result / at::scalar_tensor(n, result.options())
                                        : at::div(result.to(at::kLong), n, "trunc");
  }
  return result.to(dtype);
}

}  // namespace rehearse::fakes::testing
