// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/comm/operation.h>

#include <array>

namespace rehearse::comm {
namespace {

struct NamedByTag {
  c10d::OpType type;
  int tag;
  std::string_view name;
};

constexpr std::array kNamedByTag{
    NamedByTag{c10d::OpType::BARRIER, Operation::kMonitoredBarrier, "monitored_barrier"},
    NamedByTag{c10d::OpType::COALESCED, Operation::kAllgatherIntoTensor, "allgather_into_tensor_coalesced"},
    NamedByTag{c10d::OpType::COALESCED, Operation::kReduceScatterTensor, "reduce_scatter_tensor_coalesced"},
};

}  // namespace

std::string_view name_of(c10d::OpType type) noexcept { return op_row(type).name; }

std::string_view name_of(const Operation& call) noexcept {
  for (const auto& special : kNamedByTag) {
    if (special.type == call.type && special.tag == call.tag) return special.name;
  }
  return name_of(call.type);
}

std::string_view name_of(c10d::ReduceOp::RedOpType op) noexcept {
  switch (op) {
    case c10d::ReduceOp::SUM:
      return "sum";
    case c10d::ReduceOp::AVG:
      return "avg";
    case c10d::ReduceOp::PRODUCT:
      return "product";
    case c10d::ReduceOp::MIN:
      return "min";
    case c10d::ReduceOp::MAX:
      return "max";
    case c10d::ReduceOp::BAND:
      return "band";
    case c10d::ReduceOp::BOR:
      return "bor";
    case c10d::ReduceOp::BXOR:
      return "bxor";
    case c10d::ReduceOp::PREMUL_SUM:
      return "premul_sum";
    default:
      return "unused";
  }
}

}  // namespace rehearse::comm
