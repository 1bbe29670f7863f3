// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/comm/operation.h>

namespace rehearse::comm {

std::string_view name_of(c10d::OpType type) noexcept {
  switch (type) {
    case c10d::OpType::BROADCAST:
      return "broadcast";
    case c10d::OpType::ALLREDUCE:
      return "allreduce";
    case c10d::OpType::_ALLREDUCE_SPARSE:
      return "allreduce_sparse";
    case c10d::OpType::ALLREDUCE_COALESCED:
      return "allreduce_coalesced";
    case c10d::OpType::ALLGATHER_COALESCED:
      return "allgather_coalesced";
    case c10d::OpType::COALESCED:
      return "coalesced";
    case c10d::OpType::REDUCE:
      return "reduce";
    case c10d::OpType::ALLGATHER:
      return "allgather";
    case c10d::OpType::_ALLGATHER_BASE:
      return "_allgather_base";
    case c10d::OpType::GATHER:
      return "gather";
    case c10d::OpType::SCATTER:
      return "scatter";
    case c10d::OpType::REDUCE_SCATTER:
      return "reduce_scatter";
    case c10d::OpType::_REDUCE_SCATTER_BASE:
      return "_reduce_scatter_base";
    case c10d::OpType::ALLTOALL_BASE:
      return "alltoall_base";
    case c10d::OpType::ALLTOALL:
      return "alltoall";
    case c10d::OpType::SEND:
      return "send";
    case c10d::OpType::RECV:
      return "recv";
    case c10d::OpType::RECVANYSOURCE:
      return "recv_any_source";
    case c10d::OpType::BARRIER:
      return "barrier";
    default:
      return "unknown";
  }
}

std::string_view name_of(const Operation& call) noexcept {
  if (call.type == c10d::OpType::BARRIER && call.tag == Operation::kMonitoredBarrier) return "monitored_barrier";
  if (call.type == c10d::OpType::COALESCED && call.tag == Operation::kAllgatherIntoTensor) {
    return "allgather_into_tensor_coalesced";
  }
  if (call.type == c10d::OpType::COALESCED && call.tag == Operation::kReduceScatterTensor) {
    return "reduce_scatter_tensor_coalesced";
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

bool is_point_to_point(c10d::OpType type) noexcept {
  return type == c10d::OpType::SEND || type == c10d::OpType::RECV || type == c10d::OpType::RECVANYSOURCE;
}

}  // namespace rehearse::comm
