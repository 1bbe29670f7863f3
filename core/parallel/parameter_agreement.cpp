// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/parameter_agreement.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>
#include <c10/util/Type.h>

#include <rehearse/hash/word_hash.h>
#include <rehearse_internal/exec/check.h>

#include "parallel/number_exchange.h"

namespace rehearse::parallel {
namespace {

// For each parameter: its mark, dtype, number of dimensions, sizes, strides.
Numbers description_of(const std::vector<at::Tensor>& parameters, const Numbers& marks) {
  Numbers numbers;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i];
    numbers.push_back(marks[i]);
    numbers.push_back(static_cast<std::int64_t>(parameter.scalar_type()));
    numbers.push_back(parameter.dim());
    numbers.insert(numbers.end(), parameter.sizes().begin(), parameter.sizes().end());
    numbers.insert(numbers.end(), parameter.strides().begin(), parameter.strides().end());
  }
  return numbers;
}

// A hash of 63 bits, so that it can be negated.
std::int64_t hash_of(const Numbers& numbers) {
  WordHash hash(numbers.size() + 1);
  for (const auto number : numbers) hash.add(static_cast<std::uint64_t>(number));
  return static_cast<std::int64_t>(hash.value() >> 1);
}

struct Parameter {
  std::int64_t mark;
  at::ScalarType dtype;
  std::vector<std::int64_t> sizes, strides;
};

// The numbers come from `rank` and may be damaged, so check everything.
std::vector<Parameter> parse(const Numbers& numbers, int rank) {
  const auto check = [rank](bool is_right, const char* what, std::int64_t number) {
    TORCH_CHECK(is_right, "rank ", rank, " sent a damaged description of its parameters: ", number, " is no ", what);
  };
  std::vector<Parameter> parameters;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const std::int64_t mark = *at++;
    const std::int64_t dtype = at == numbers.end() ? -1 : *at++;
    check(0 <= dtype && dtype < static_cast<std::int64_t>(at::ScalarType::NumOptions), "dtype", dtype);
    const std::int64_t dimensions = at == numbers.end() ? -1 : *at++;
    check(0 <= dimensions && dimensions <= (numbers.end() - at) / 2, "number of dimensions", dimensions);
    parameters.push_back(
        {mark, static_cast<at::ScalarType>(dtype), {at, at + dimensions}, {at + dimensions, at + 2 * dimensions}});
    at += 2 * dimensions;
  }
  return parameters;
}

// Text on the first property in which a parameter differs from rank 0's.
std::string difference(const Parameter& zero, const Parameter& theirs, const char* marked) {
  if (theirs.sizes != zero.sizes) {
    return c10::str("sizes ", at::IntArrayRef(theirs.sizes),
                    " appears not to match sizes of the same param in process 0, ", at::IntArrayRef(zero.sizes), ".");
  }
  if (theirs.strides != zero.strides) {
    return c10::str("strides ", at::IntArrayRef(theirs.strides),
                    " appears not to match strides of the same param in process 0, ", at::IntArrayRef(zero.strides),
                    ".");
  }
  if (theirs.dtype != zero.dtype) {
    return c10::str("dtype ", theirs.dtype, " appears not to match dtype of the same param in process 0, ", zero.dtype,
                    ".");
  }
  return c10::str("the same sizes, strides and dtype differs from that of process 0 in ", marked, ".");
}

[[noreturn]] void fail(int rank, int other, const Numbers& zero_numbers, const Numbers& other_numbers,
                       const std::vector<std::string>& names, const MarkedParameters& how) {
  const auto zero = parse(zero_numbers, 0);
  const auto theirs = parse(other_numbers, other);
  if (zero.size() != theirs.size()) {
    const bool differs = rank == other;
    TORCH_CHECK(false, how.who, " expects same model across all ranks, but Rank ", rank, " has ",
                (differs ? theirs : zero).size(), " params, while rank ", differs ? 0 : other, " has inconsistent ",
                (differs ? zero : theirs).size(), " params.");
  }
  std::size_t at = 0;
  const auto same = [](const Parameter& a, const Parameter& b) {
    return a.mark == b.mark && a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides;
  };
  while (at < zero.size() && same(zero[at], theirs[at])) ++at;
  TORCH_CHECK(at < zero.size(), "ranks 0 and ", other,
              " describe the same parameters, but their hashes differ: what a ", "rank sent was damaged");
  TORCH_CHECK(false, "[", rank, "]: params[", at, "] in ",
              rank == other ? std::string("this process") : c10::str("process ", other), " with ",
              difference(zero[at], theirs[at], how.marked), " Its name here is ", names[at], ".");
}

}  // namespace

void verify_same_parameters(const c10::intrusive_ptr<c10d::ProcessGroup>& group, const ReducedParameters& parameters) {
  verify_same_parameters(group, parameters, {"DDP", Numbers(parameters.tensors.size(), 0), ""});
}

void verify_same_parameters(const c10::intrusive_ptr<c10d::ProcessGroup>& group, const ReducedParameters& parameters,
                            const MarkedParameters& how) {
  REHEARSE_CHECK(how.marks.size() == parameters.tensors.size(), how.marks.size(), parameters.tensors.size());
  const auto& tensors = parameters.tensors;
  const NumberExchange exchange(group, tensors.empty() ? device_of(*group) : tensors.front().device());
  const auto own = description_of(parameters.tensors, how.marks);
  const auto count = static_cast<std::int64_t>(parameters.tensors.size());
  const auto hash = hash_of(own);
  const auto maxima = exchange.all_reduce({count, hash, -count, -hash}, c10d::ReduceOp::MAX);
  if (maxima[0] == -maxima[2] && maxima[1] == -maxima[3]) return;

  const auto zero = exchange.broadcast(own, 0);
  const int rank = group->getRank();
  const int other = static_cast<int>(-exchange.max(own == zero ? -group->getSize() : -rank));
  TORCH_CHECK(0 <= other && other < group->getSize(), "rank ", rank, " learned that rank ", other,
              " has other parameters; the group has no such rank: what a rank sent was damaged");
  const auto theirs = exchange.broadcast(own, other);
  // A rank that differs from rank 0 reports its own difference; the other ranks report the first rank that differs.
  if (own == zero) fail(rank, other, zero, theirs, parameters.names, how);
  fail(rank, rank, zero, own, parameters.names, how);
}

}  // namespace rehearse::parallel
