// SPDX-License-Identifier: BSD-3-Clause
#include "network_cost.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <rehearse_internal/comm/op_table.h>

namespace rehearse::sim {
namespace {

constexpr std::uint32_t kJitterSteps = 16;

// About 73 years. Longer transfers (a bandwidth of a byte a century) are cut to this, so that sums stay in range.
constexpr double kNanosecondsMax = 0x1p61;

std::uint64_t bytes_of(const at::Tensor& tensor) {
  if (tensor.is_sparse()) return bytes_of(tensor._indices()) + bytes_of(tensor._values());
  return static_cast<std::uint64_t>(tensor.numel()) * tensor.element_size();
}

std::uint64_t bytes_of(const comm::TensorList& tensors) {
  std::uint64_t sum = 0;
  for (const at::Tensor& tensor : tensors) sum += bytes_of(tensor);
  return sum;
}

// The largest number of bytes that a single rank sends or receives.
std::uint64_t bytes_of_busiest_rank(const comm::Transfer& transfer) {
  std::uint64_t most = 0;
  for (const comm::Operation* call : transfer.calls) {
    most = std::max({most, bytes_of(call->inputs), bytes_of(call->outputs)});
  }
  return most;
}

std::uint64_t bytes_of_all_inputs(const comm::Transfer& transfer) {
  std::uint64_t sum = 0;
  for (const comm::Operation* call : transfer.calls) sum += bytes_of(call->inputs);
  return sum;
}

std::uint64_t busiest_input(const comm::Transfer& transfer) {
  std::uint64_t most = 0;
  for (const comm::Operation* call : transfer.calls) most = std::max(most, bytes_of(call->inputs));
  return most;
}

// Consecutive latencies, and bytes over one link: `bytes` times `numerator` / `denominator`.
struct Cost {
  std::uint64_t latencies = 0;
  std::uint64_t bytes = 0;
  std::uint64_t numerator = 1;
  std::uint64_t denominator = 1;

  double link_bytes() const {
    return static_cast<double>(bytes) * static_cast<double>(numerator) / static_cast<double>(denominator);
  }
};

// The cost of a transfer among `n` ranks; `n` is at least two.
using Formula = Cost (*)(const comm::Transfer& transfer, std::uint64_t n);

std::uint64_t tree_depth(std::uint64_t n) { return static_cast<std::uint64_t>(std::bit_width(n - 1)); }  // ceil(log2 n)

Cost one_message(const comm::Transfer& transfer, std::uint64_t) {
  return {1, bytes_of(transfer.calls.front()->inputs)};
}

Cost up_and_down_a_tree(const comm::Transfer&, std::uint64_t n) { return {2 * tree_depth(n), 0}; }

// In a scatter or gather, the root holds all n pieces, so it is the busiest rank.
Cost through_a_tree(const comm::Transfer& transfer, std::uint64_t n) {
  return {tree_depth(n), bytes_of_busiest_rank(transfer)};
}

Cost twice_around_a_ring(const comm::Transfer& transfer, std::uint64_t n) {
  return {2 * (n - 1), busiest_input(transfer), 2 * (n - 1), n};
}

Cost inputs_around_a_ring(const comm::Transfer& transfer, std::uint64_t n) {
  return {n - 1, bytes_of_all_inputs(transfer), n - 1, n};
}

Cost pieces_around_a_ring(const comm::Transfer& transfer, std::uint64_t n) {
  return {n - 1, bytes_of_busiest_rank(transfer), n - 1, n};
}

// Null for an operation with parts: each part has its own formula.
constexpr Formula formula_of(comm::OpTime time) noexcept {
  switch (time) {
    case comm::OpTime::one_message:
      return one_message;
    case comm::OpTime::up_and_down_a_tree:
      return up_and_down_a_tree;
    case comm::OpTime::through_a_tree:
      return through_a_tree;
    case comm::OpTime::twice_around_a_ring:
      return twice_around_a_ring;
    case comm::OpTime::inputs_around_a_ring:
      return inputs_around_a_ring;
    case comm::OpTime::pieces_around_a_ring:
      return pieces_around_a_ring;
    case comm::OpTime::of_parts:
      return nullptr;
  }
  return nullptr;
}
static_assert(comm::all_ops([](const comm::OpRow& row) { return formula_of(row.time) != nullptr; }),
              "every operation has its time; one of parts has theirs");

Cost cost_of(const comm::Transfer& transfer) {
  const std::uint64_t n = transfer.group->ranks.size();
  if (n <= 1) return {};
  const Formula formula = formula_of(comm::op_row(transfer.type).time);
  if (formula == nullptr) {
    throw std::logic_error(fmt::format("the network model has no formula for {}", comm::name_of(transfer.type)));
  }
  return formula(transfer, n);
}

// For a call with parts: the largest number of latencies among the parts, and the sum of their bytes.
std::pair<std::uint64_t, double> latencies_and_bytes(const comm::Transfer& transfer) {
  if (transfer.calls.front()->parts.empty()) {
    const Cost cost = cost_of(transfer);
    return {cost.latencies, cost.link_bytes()};
  }
  std::uint64_t latencies = 0;
  double bytes = 0;
  comm::for_each_part(transfer, [&](std::size_t, const comm::Transfer& part, std::span<comm::Operation*>) {
    const Cost cost = cost_of(part);
    latencies = std::max(latencies, cost.latencies);
    bytes += cost.link_bytes();
  });
  return {latencies, bytes};
}

VirtualDuration nanoseconds(double count) {
  return VirtualDuration(static_cast<std::int64_t>(std::min(count, kNanosecondsMax)));
}

}  // namespace

void require_valid(const NetworkModel& model) {
  std::string problems;
  const auto require = [&](bool holds, const std::string& problem) {
    if (!holds) problems += (problems.empty() ? "" : "\n") + problem;
  };
  require(model.latency >= VirtualDuration::zero(),
          fmt::format("WorldOptions::network.latency is {} ns; it is 0 or more", model.latency.count()));
  require(model.store >= VirtualDuration::zero(),
          fmt::format("WorldOptions::network.store is {} ns; it is 0 or more", model.store.count()));
  require(model.bytes_per_second > 0,
          fmt::format("WorldOptions::network.bytes_per_second is {}; it is more than 0", model.bytes_per_second));
  require(model.jitter >= 0 && std::isfinite(model.jitter),
          fmt::format("WorldOptions::network.jitter is {}; it is 0 (none) or more, and finite", model.jitter));
  if (!problems.empty()) throw std::invalid_argument(problems);
}

NetworkCost::NetworkCost(const NetworkModel& model, Decisions& decisions) : model_(model), decisions_(decisions) {
  require_valid(model_);
}

VirtualDuration NetworkCost::duration(const comm::Transfer& transfer) const {
  const auto [latencies, bytes] = latencies_and_bytes(transfer);
  const double latency = static_cast<double>(latencies) * static_cast<double>(model_.latency.count());
  return jittered(nanoseconds(latency + std::round(bytes / model_.bytes_per_second * 1e9)));
}

VirtualDuration NetworkCost::jittered(VirtualDuration base) const {
  if (model_.jitter == 0 || base == VirtualDuration::zero()) return base;
  std::array<std::uint32_t, kJitterSteps> steps;
  std::iota(steps.begin(), steps.end(), 0u);
  const std::uint32_t step = decisions_.choose(ChoiceKind::latency, steps);
  const double most = static_cast<double>(base.count()) * model_.jitter;
  return base + nanoseconds(std::round(most * step / (kJitterSteps - 1)));
}

}  // namespace rehearse::sim
