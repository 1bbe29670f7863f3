// SPDX-License-Identifier: BSD-3-Clause
#include "parity_case.h"

#include <rehearse_internal/exec/failure.h>

namespace rehearse::parity {

std::vector<Result> run_cases(const std::vector<Case>& cases, const ProcessGroup& group) {
  std::vector<Result> results;
  for (const Case& each : cases) {
    Result result;
    try {
      for (const at::Tensor& value : each.body(group)) result.values.push_back(value.contiguous().clone());
    } catch (const RankAborted&) {
      throw;
    } catch (const std::exception& error) {
      const std::string text = error.what();
      result.refusal = text.substr(0, text.find('\n'));
      if (result.refusal.empty()) result.refusal = "an exception without a text";
    }
    results.push_back(std::move(result));
  }
  return results;
}

at::Tensor exact(at::IntArrayRef sizes, at::ScalarType dtype, int rank) {
  const auto count = c10::multiply_integers(sizes);
  const auto numbers = at::remainder(at::arange(count) * 7 + rank * 3, 5) + (rank % 2);
  if (dtype == at::kBool) return at::remainder(numbers, 2).to(at::kBool).view(sizes);
  return numbers.to(dtype).view(sizes);
}

at::Tensor rough(at::IntArrayRef sizes, at::ScalarType dtype, int rank) {
  const auto count = c10::multiply_integers(sizes);
  return at::sin(at::arange(count, at::kDouble) * 0.37 + rank * 1.3).to(dtype).view(sizes);
}

}  // namespace rehearse::parity
