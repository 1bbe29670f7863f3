// SPDX-License-Identifier: BSD-3-Clause
#include "watched_call.h"

#include <algorithm>

#include <fmt/format.h>

#include <rehearse_internal/comm/title.h>

namespace rehearse::sim {
namespace {

using Use = WatchedBuffer::Use;
using Value = WatchedBuffer::Value;

// Is it a root's or another rank's, of which the operation only reads the tensor that it is given?
bool only_reads(const comm::Operation& call, bool is_root) {
  return (call.type == c10d::OpType::BROADCAST && is_root) || (call.type == c10d::OpType::REDUCE && !is_root);
}

Value value_of_input(const comm::Operation& call, bool is_root) {
  if (is_root) return Value::taken;
  if (call.type == c10d::OpType::BROADCAST) return Value::replaced;
  return call.type == c10d::OpType::REDUCE ? Value::spoilt : Value::taken;
}

void add(const at::Tensor& tensor, Use use, Value value, std::vector<WatchedBuffer>& buffers) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  WatchedBuffer buffer(tensor, use, value);
  if (!buffer.footprint.empty()) buffers.push_back(std::move(buffer));
}

void add_buffers(const comm::Operation& call, const comm::GroupIdentity& group, int rank,
                 std::vector<WatchedBuffer>& buffers) {
  if (!call.parts.empty()) {
    for (const auto& part : call.parts) add_buffers(part, group, rank, buffers);
    // Gloo has no batches, and NCCL leaves the other ranks' tensors as they are.
    for (auto& buffer : buffers) {
      if (buffer.value == Value::spoilt) buffer.value = Value::taken;
    }
    return;
  }
  const bool is_root = call.root >= 0 && group.global_rank(call.root) == rank;
  const bool reads = call.root >= 0 && only_reads(call, is_root);
  const Value value = value_of_input(call, is_root);
  const auto is_in = [](const at::Tensor& tensor, const comm::TensorList& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& other) { return other.is_same(tensor); });
  };
  for (const auto& input : call.inputs) {
    add(input, !reads && is_in(input, call.outputs) ? Use::both : Use::input, value, buffers);
  }
  for (const auto& output : call.outputs) {
    if (!is_in(output, call.inputs)) add(output, Use::output, Value::replaced, buffers);
  }
}

}  // namespace

WatchedBuffer::WatchedBuffer(const at::Tensor& given, Use how, Value of_value)
    : use(how),
      value(of_value),
      footprint(given),
      tensor(given.unsafeGetTensorImpl()),
      storage(given.storage().getWeakStorageImpl()),
      data(given.storage().unsafeGetStorageImpl()->data()),
      bytes(given.storage().nbytes()),
      numel(given.numel()) {}

bool WatchedBuffer::is_there() const noexcept {
  return !storage.expired() && storage._unsafe_get_target()->data() == data;
}

bool WatchedBuffer::is_exchanged() const {
  const auto* const now = tensor->storage().unsafeGetStorageImpl();
  return now != storage._unsafe_get_target() || now->data() != data || now->nbytes() < bytes ||
         tensor->numel() != numel;
}

WatchedCall::WatchedCall(const comm::Operation& made, const comm::GroupIdentity& of_group, int of_rank,
                         std::uint64_t sequence)
    : call(&made),
      rank(of_rank),
      group(of_group.id),
      title(comm::title_of(made, sequence, of_group)),
      is_message(comm::is_point_to_point(made.type)),
      is_barrier(made.type == c10d::OpType::BARRIER),
      async(made.async_op) {
  add_buffers(made, of_group, of_rank, buffers);
}

std::string describe(const WatchedCall& call) {
  const auto where = call.where.describe();
  return where.empty() ? call.title : fmt::format("{} (called at {})", call.title, where);
}

std::string describe(const WatchedBuffer& buffer, const WatchedCall& call) {
  const auto* const role = buffer.use == Use::both ? "tensor" : buffer.use == Use::input ? "input" : "output";
  const auto alike = std::count_if(call.buffers.begin(), call.buffers.end(),
                                   [&](const auto& other) { return other.use == buffer.use; });
  const auto* const article = alike == 1 ? "the" : buffer.use == Use::both ? "a" : "an";
  return fmt::format("{} {} of {}", article, role, describe(call));
}

}  // namespace rehearse::sim
