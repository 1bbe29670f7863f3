// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/checks/reductions.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "checks/values/tensor_difference.h"

namespace rehearse::checks {
namespace {

constexpr std::size_t kBytesMost = std::size_t{256} << 20;
constexpr std::int64_t kOffsetsTried = 16;  // how many positions in a result to try for a gradient

at::Tensor numbers_in(const at::Tensor& part) { return part.flatten().to(at::kDouble); }

// The position in `result` of the numbers of `gradient`; -1: none.
std::int64_t offset_in(const at::Tensor& result, const at::Tensor& gradient) {
  constexpr double kRounding = 1e-5;
  const auto length = gradient.numel();
  if (length == 0 || length > result.numel()) return -1;
  const auto largest = gradient.abs().argmax().item<std::int64_t>();
  const double value = gradient[largest].item<double>();
  if (value == 0) return -1;
  const auto begins = result.narrow(0, largest, result.numel() - length + 1);
  const auto offsets = (begins - value).abs().le(kRounding * std::abs(value)).nonzero().flatten();
  for (std::int64_t i = 0; i < std::min(offsets.numel(), kOffsetsTried); ++i) {
    const auto offset = offsets[i].item<std::int64_t>();
    const auto apart = (result.narrow(0, offset, length) - gradient).norm().item<double>();
    if (apart <= kRounding * gradient.norm().item<double>()) return offset;
  }
  return -1;
}

}  // namespace

void Reductions::add(const Call& call) {
  Kept kept;
  kept.number = number_++;
  kept.title = call.title;
  kept.where = call.where;
  kept.ranks = call.ranks;
  kept.factor = call.is_mean ? 1.0 / static_cast<double>(call.ranks.size()) : 1.0;
  kept.is_bucket = call.is_bucket;
  for (const auto& input : call.inputs) {
    kept.parts.push_back(copied(input));
    kept.memory.push_back({input.storage().getWeakStorageImpl(), input.const_data_ptr()});
    bytes_ += kept.parts.back().nbytes();
  }
  kept_.push_back(std::move(kept));
  while (bytes_ > kBytesMost) {
    for (const auto& part : kept_.front().parts) bytes_ -= part.nbytes();
    kept_.pop_front();
  }
}

std::optional<Reductions::Parts> Reductions::parts_of(const at::Tensor& gradient) const {
  for (auto call = kept_.rbegin(); call != kept_.rend(); ++call) {
    at::Tensor sum;
    for (const auto& part : call->parts) sum = sum.defined() ? sum + numbers_in(part) : numbers_in(part);
    const double ranks = static_cast<double>(call->ranks.size());
    for (const double factor : {call->factor, call->factor / ranks}) {
      const auto offset = offset_in(sum * factor, gradient);
      if (offset < 0) continue;
      Parts found{call->ranks, {}, call->is_bucket || factor < 1, call->is_bucket};
      for (const auto& part : call->parts)
        found.parts.push_back(numbers_in(part).narrow(0, offset, gradient.numel()) * factor);
      return found;
    }
  }
  return std::nullopt;
}

std::vector<std::string> Reductions::calls_on(int rank, const at::Tensor& gradient) const {
  std::vector<std::string> calls;
  if (!gradient.defined() || !gradient.has_storage()) return calls;
  const auto begun = begun_.find(rank);
  for (const auto& call : kept_) {
    if (begun != begun_.end() && call.number < begun->second) continue;
    const auto found = std::ranges::find(call.ranks, rank);
    if (found == call.ranks.end()) continue;
    const auto& memory = call.memory[static_cast<std::size_t>(found - call.ranks.begin())];
    const bool same = memory.storage._unsafe_get_target() == gradient.storage().unsafeGetStorageImpl() &&
                      memory.begin == gradient.const_data_ptr();
    if (!same) continue;
    const auto where = call.where.describe();
    calls.push_back(call.title + (where.empty() ? "" : " at " + where));
  }
  return calls;
}

}  // namespace rehearse::checks
