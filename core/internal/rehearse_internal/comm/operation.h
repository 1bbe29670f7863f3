// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <rehearse_internal/comm/device_end.h>
#include <rehearse_internal/comm/op_table.h>

namespace rehearse::comm {

using TensorList = c10::SmallVector<at::Tensor, 1>;

// The name of a tensor's contents, for example a bucket of DDP; see Communicators::name_payload().
struct PayloadName {
  std::string text;
  std::uint64_t hash = 0;  // of the text
};

// Data that a layer in front of a fabric attaches to a call, from CallInterceptor::on_call() to Fabric::launch().
class CallMark : public c10::intrusive_ptr_target {};

// Data that a CallInterceptor keeps about a call, starting at CallInterceptor::on_call(). The interceptor owns the
// object, and resets the call's pointer when it forgets the call.
class CallTrace {
 protected:
  ~CallTrace() = default;
};

// The numbers of a call on which all ranks must agree. Each is 0 or more, or -1 if the call has none. Each member needs
// a row in kAgreedNumbers.
struct AgreedNumbers {
  int root = -1;
};

// One rank's call of one collective or point-to-point operation, as the user made it. Owns references to the tensors,
// so that they live until the operation is complete. Ranks are ranks in the group.
//
// How c10d's calls fill it (n = group size):
//   op                     inputs            outputs           more
//   broadcast              1 (read on root)  the same tensor   root
//   allreduce              1 (in place)      the same tensor   reduce_op
//   allreduce_sparse       1 (in place)      the same tensor   reduce_op; sparse COO, of any number of values
//   reduce                 1                 the same (root)   reduce_op, root
//   allgather              1                 n                 any sizes; outputs[j] is sized like rank j's input
//   _allgather_base        1                 1 (n times)
//   gather                 1                 n on the root     root
//   scatter                n on the root     1                 root
//   reduce_scatter         n                 1                 reduce_op; inputs[j] is sized like rank j's output
//   _reduce_scatter_base   1 (n times)       1                 reduce_op
//   alltoall_base          1                 1                 input_splits, output_splits in elements (always n)
//   alltoall               n                 n                 inputs[j] is as long as rank j's outputs[this rank]
//   allreduce_coalesced    all               all               parts: an allreduce each, with the tag kCopied
//   allgather_coalesced    all               all               parts: an allgather each
//   coalesced              all               all               parts: the collectives between startCoalescing() and
//                                                              endCoalescing(); tag: 0, kAllgatherIntoTensor or
//                                                              kReduceScatterTensor
//   send                   1                 -                 peer, tag
//   recv                   -                 1                 peer (-1: any source), tag
//   barrier                -                 -                 tag: kMonitoredBarrier for monitoredBarrier(), else 0
// The inputs and outputs of a call with parts are those of its parts, one after the other.
struct Operation : AgreedNumbers {
  static constexpr int kMonitoredBarrier = 1;
  static constexpr int kAllgatherIntoTensor = 1;
  static constexpr int kReduceScatterTensor = 2;
  static constexpr int kCopied = 1;  // back ends reduce a contiguous copy

  c10d::OpType type = c10d::OpType::UNKNOWN;
  c10d::ReduceOp::RedOpType reduce_op = c10d::ReduceOp::UNUSED;
  bool async_op = true;  // c10d's asyncOp; false: the caller waits at once
  int peer = -1;
  int tag = 0;
  c10::intrusive_ptr<DeviceEnd> end;  // made by Fabric::prepare(); null: the operation runs on the host
  c10::intrusive_ptr<CallMark> mark;  // null: none
  CallTrace* trace = nullptr;  // null: no interceptor keeps data about the call. Must be null in a copy of a call
  TensorList inputs;
  TensorList outputs;
  c10::SmallVector<std::int64_t, 0> input_splits;
  c10::SmallVector<std::int64_t, 0> output_splits;
  c10::intrusive_ptr<c10d::_SupplementBase> reduce_supplement;  // PREMUL_SUM's factor
  // Carried out as one: all inputs are read before any output is written. Parts have no parts, timeout or label of
  // their own.
  std::vector<Operation> parts;
  std::chrono::milliseconds timeout{0};  // 0: none
  const std::string* label = nullptr;    // the user's name for the payload; interned by the world; null: none
  const PayloadName* payload = nullptr;  // the tensor's name; interned by the world; null: none
};

// Describes one member of AgreedNumbers. Code that compares calls, describes them or sends them to another process
// reads only this row.
struct AgreedNumber {
  const char* name;
  int Operation::* value;  // negative: the call has none
};
inline constexpr std::array kAgreedNumbers{AgreedNumber{"root", &Operation::root}};
static_assert(sizeof(AgreedNumbers) == kAgreedNumbers.size() * sizeof(int), "each of the numbers has its row");

// "allreduce", "_allgather_base", ...: the names of c10d's profiling titles without the back end.
std::string_view name_of(c10d::OpType type) noexcept;
std::string_view name_of(const Operation& call) noexcept;  // distinguishes "monitored_barrier" and similar calls
std::string_view name_of(c10d::ReduceOp::RedOpType op) noexcept;

inline bool is_monitored_barrier(const Operation& call) noexcept {
  return call.type == c10d::OpType::BARRIER && call.tag == Operation::kMonitoredBarrier;
}

constexpr bool is_point_to_point(c10d::OpType type) noexcept { return op_row(type).kind == OpKind::point_to_point; }

}  // namespace rehearse::comm
