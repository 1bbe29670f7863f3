// SPDX-License-Identifier: BSD-3-Clause
#include "nccl_calls.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <rehearse_internal/comm/op_table.h>

#include "nccl_error.h"
#include "nccl_types.h"

namespace rehearse::real {
namespace {

using comm::Operation;

// The memory of a tensor, or of a piece of it, in NCCL's elements.
struct Span {
  void* data = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
};

Span span_of(const at::Tensor& tensor) {
  const auto elements = elements_moved(tensor.scalar_type());
  return {const_cast<void*>(tensor.const_data_ptr()), static_cast<std::size_t>(tensor.numel()) * elements.each,
          elements.type};
}

class Pieces {
 public:
  explicit Pieces(const at::Tensor& tensor)
      : elements_(elements_moved(tensor.scalar_type())),
        item_bytes_(tensor.itemsize()),
        next_(static_cast<char*>(const_cast<void*>(tensor.const_data_ptr()))) {}

  Span take(std::int64_t numel) {
    const Span piece{next_, static_cast<std::size_t>(numel) * elements_.each, elements_.type};
    next_ += static_cast<std::size_t>(numel) * item_bytes_;
    return piece;
  }

 private:
  NcclElements elements_;
  std::size_t item_bytes_;
  char* next_;
};

// One rank's calls of NCCL.
class Issue {
 public:
  Issue(NcclApi& nccl, const RankOnDevice& where) : nccl_(nccl), at_(where) {}

  void call(const Operation& call);

 private:
  void all_gather_lists(const Operation& call);
  void gather(const Operation& call);
  void scatter(const Operation& call);
  void all_to_all_base(const Operation& call);
  void all_to_all_lists(const Operation& call);
  void reduce(const Operation& call);

  void send(const Span& what, int peer) {
    require("ncclSend", nccl_.send(what.data, what.count, what.type, peer, at_.comm, at_.stream));
  }
  void receive(const Span& where, int peer) {
    require("ncclRecv", nccl_.recv(where.data, where.count, where.type, peer, at_.comm, at_.stream));
  }
  void broadcast(const void* from, const Span& to, int root) {
    require("ncclBroadcast", nccl_.broadcast(from, to.data, to.count, to.type, root, at_.comm, at_.stream));
  }
  void reduce_to(const Span& from, void* to, ncclRedOp_t op, int root) {
    require("ncclReduce", nccl_.reduce(from.data, to, from.count, from.type, op, root, at_.comm, at_.stream));
  }
  void require(std::string_view call, ncclResult_t result) { require_success(nccl_, call, result, at_.comm); }

  NcclApi& nccl_;
  const RankOnDevice& at_;
};

void Issue::all_gather_lists(const Operation& call) {
  const Span mine = span_of(call.inputs[0]);
  for (int rank = 0; rank < at_.ranks; ++rank) {
    const Span to = span_of(call.outputs[static_cast<std::size_t>(rank)]);
    broadcast(rank == at_.rank ? mine.data : to.data, to, rank);
  }
}

void Issue::gather(const Operation& call) {
  send(span_of(call.inputs[0]), call.root);
  if (at_.rank != call.root) return;
  for (int rank = 0; rank < at_.ranks; ++rank) receive(span_of(call.outputs[static_cast<std::size_t>(rank)]), rank);
}

void Issue::scatter(const Operation& call) {
  receive(span_of(call.outputs[0]), call.root);
  if (at_.rank != call.root) return;
  for (int rank = 0; rank < at_.ranks; ++rank) send(span_of(call.inputs[static_cast<std::size_t>(rank)]), rank);
}

void Issue::all_to_all_base(const Operation& call) {
  Pieces in(call.inputs[0]);
  Pieces out(call.outputs[0]);
  for (int rank = 0; rank < at_.ranks; ++rank) {
    send(in.take(call.input_splits[static_cast<std::size_t>(rank)]), rank);
    receive(out.take(call.output_splits[static_cast<std::size_t>(rank)]), rank);
  }
}

void Issue::all_to_all_lists(const Operation& call) {
  for (int rank = 0; rank < at_.ranks; ++rank) {
    send(span_of(call.inputs[static_cast<std::size_t>(rank)]), rank);
    receive(span_of(call.outputs[static_cast<std::size_t>(rank)]), rank);
  }
}

void Issue::reduce(const Operation& call) {
  const Reduction op(nccl_, call, call.inputs[0].scalar_type(), at_.comm);
  const Span from = span_of(call.inputs[0]);
  switch (call.type) {
    case c10d::OpType::ALLREDUCE:
      return require("ncclAllReduce",
                     nccl_.all_reduce(from.data, from.data, from.count, from.type, op.op(), at_.comm, at_.stream));
    case c10d::OpType::REDUCE:
      return reduce_to(from, from.data, op.op(), call.root);
    case c10d::OpType::_REDUCE_SCATTER_BASE: {
      const Span to = span_of(call.outputs[0]);
      return require("ncclReduceScatter",
                     nccl_.reduce_scatter(from.data, to.data, to.count, to.type, op.op(), at_.comm, at_.stream));
    }
    default:  // REDUCE_SCATTER with lists: each rank's part may have its own size
      for (int rank = 0; rank < at_.ranks; ++rank) {
        void* const to = rank == at_.rank ? span_of(call.outputs[0]).data : nullptr;
        reduce_to(span_of(call.inputs[static_cast<std::size_t>(rank)]), to, op.op(), rank);
      }
  }
}

// True if call() has a case for the operation. Its switch has a default, because c10d has more types since 2.12.
constexpr bool has_case(const comm::OpRow& row) {
  using enum c10d::OpType;
  const c10d::OpType is = row.type;
  return is == BROADCAST || is == ALLREDUCE || is == REDUCE || is == ALLGATHER || is == _ALLGATHER_BASE ||
         is == GATHER || is == SCATTER || is == REDUCE_SCATTER || is == ALLTOALL_BASE || is == ALLTOALL || is == SEND ||
         is == RECV || is == RECVANYSOURCE || is == BARRIER || is == _REDUCE_SCATTER_BASE || is == _ALLREDUCE_SPARSE;
}
static_assert(comm::all_ops(has_case), "each operation of op_table.h has a case in Issue::call()");

void Issue::call(const Operation& call) {
  for (const Operation& part : call.parts) Issue::call(part);
  if (!call.parts.empty()) return;
  switch (call.type) {
    case c10d::OpType::BROADCAST: {
      const Span tensor = span_of(call.inputs[0]);
      return broadcast(tensor.data, tensor, call.root);
    }
    case c10d::OpType::_ALLGATHER_BASE: {
      const Span from = span_of(call.inputs[0]);
      return require("ncclAllGather", nccl_.all_gather(from.data, span_of(call.outputs[0]).data, from.count, from.type,
                                                       at_.comm, at_.stream));
    }
    case c10d::OpType::ALLGATHER:
      return all_gather_lists(call);
    case c10d::OpType::GATHER:
      return gather(call);
    case c10d::OpType::SCATTER:
      return scatter(call);
    case c10d::OpType::ALLTOALL_BASE:
      return all_to_all_base(call);
    case c10d::OpType::ALLTOALL:
      return all_to_all_lists(call);
    case c10d::OpType::SEND:
      return send(span_of(call.inputs[0]), call.peer);
    case c10d::OpType::RECV:
    case c10d::OpType::RECVANYSOURCE:
      return receive(span_of(call.outputs[0]), call.peer >= 0 ? call.peer : at_.sender);
    case c10d::OpType::ALLREDUCE:
    case c10d::OpType::REDUCE:
    case c10d::OpType::REDUCE_SCATTER:
    case c10d::OpType::_REDUCE_SCATTER_BASE:
      return reduce(call);
    case c10d::OpType::BARRIER:  // no call of NCCL: the fabric waits until the devices have reached it
    case c10d::OpType::ALLREDUCE_COALESCED:
    case c10d::OpType::ALLGATHER_COALESCED:
    case c10d::OpType::COALESCED:
    case c10d::OpType::_ALLREDUCE_SPARSE:  // refused by require_carried()
    case c10d::OpType::UNKNOWN:
    default:
      break;
  }
  TORCH_INTERNAL_ASSERT(false, "no call of NCCL for ", comm::name_of(call));
}

void require_dense(const at::Tensor& tensor) {
  TORCH_CHECK(!tensor.is_sparse(), "Tensors must be dense");
  TORCH_CHECK(tensor.is_contiguous(tensor.suggest_memory_format()), "Tensors must be contiguous");
  TORCH_CHECK(!tensor.is_conj() && !tensor.is_neg(),
              "Tensors must be no unresolved conjugate or negative views; use resolve_conj() or resolve_neg()");
  static_cast<void>(elements_moved(tensor.scalar_type()));
}

}  // namespace

void require_carried(const Operation& call) {
  for (const Operation& part : call.parts) require_carried(part);
  TORCH_CHECK(call.type != c10d::OpType::_ALLREDUCE_SPARSE,
              "allreduce_sparse is only available in the NCCL experimental branch.");
  for (const at::Tensor& tensor : call.inputs) require_dense(tensor);
  for (const at::Tensor& tensor : call.outputs) require_dense(tensor);
  if (comm::op_row(call.type).kind != comm::OpKind::reduces || call.inputs.empty()) return;
  require_reducible(call, call.inputs[0].scalar_type());
  if (call.reduce_op == c10d::ReduceOp::PREMUL_SUM) require_factor(call);
}

void issue(NcclApi& nccl, const RankOnDevice& where, const Operation& call) { Issue(nccl, where).call(call); }

}  // namespace rehearse::real
