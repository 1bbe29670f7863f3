// SPDX-License-Identifier: BSD-3-Clause
#include "watched_call.h"

#include <algorithm>
#include <functional>

#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>

#include <rehearse_internal/comm/title.h>

namespace rehearse::sim {
namespace {

using Use = WatchedBuffer::Use;
using Value = WatchedBuffer::Value;

// True if the operation only reads the tensor that this rank passes, because of the rank's role (root or not).
bool only_reads(const comm::Operation& call, bool is_root) {
  return (call.type == c10d::OpType::BROADCAST && is_root) || (call.type == c10d::OpType::REDUCE && !is_root);
}

Value value_of_input(const comm::Operation& call, bool is_root) {
  if (is_root) return Value::taken;
  if (call.type == c10d::OpType::BROADCAST) return Value::replaced;
  return call.type == c10d::OpType::REDUCE ? Value::undefined : Value::taken;
}

void add(const WatchedCall& call, const at::Tensor& tensor, Use use, Value value,
         std::pmr::vector<WatchedBuffer>& buffers) {
  if (!tensor.defined() || !tensor.has_storage() || bounds_of(tensor).empty()) return;
  buffers.emplace_back(call, tensor, use, value);
}

void add_buffers(const WatchedCall& watched, const comm::Operation& call, const comm::GroupIdentity& group,
                 std::pmr::vector<WatchedBuffer>& buffers) {
  if (!call.parts.empty()) {
    for (const auto& part : call.parts) add_buffers(watched, part, group, buffers);
    // A coalesced reduce() leaves no tensor undefined. NCCL does not change the tensors of ranks other than the root.
    // Gloo does, but has no batches.
    for (auto& buffer : buffers) {
      if (buffer.value == Value::undefined) buffer.value = Value::taken;
    }
    return;
  }
  const bool is_root = call.root >= 0 && group.global_rank(call.root) == watched.rank;
  const bool reads = call.root >= 0 && only_reads(call, is_root);
  const Value value = value_of_input(call, is_root);
  const auto is_in = [](const at::Tensor& tensor, const comm::TensorList& list) {
    return std::ranges::any_of(list, [&](const auto& other) { return other.is_same(tensor); });
  };
  for (const auto& input : call.inputs) {
    add(watched, input, !reads && is_in(input, call.outputs) ? Use::both : Use::input, value, buffers);
  }
  for (const auto& output : call.outputs) {
    if (!is_in(output, call.inputs)) add(watched, output, Use::output, Value::replaced, buffers);
  }
}

}  // namespace

CallTitle::CallTitle(const comm::Operation& call, const comm::GroupIdentity& of_group, std::uint64_t number)
    : group(&of_group),
      sequence(number),
      label(call.label),
      payload(call.payload),
      peer(call.peer),
      tag(call.tag),
      type(call.type) {}

std::string CallTitle::text() const {
  comm::Operation call;
  call.type = type;
  call.peer = peer;
  call.tag = tag;
  call.label = label;
  call.payload = payload;
  return comm::title_of(call, sequence, *group);
}

WatchedStorage::WatchedStorage(const c10::Storage& given)
    : storage(given.getWeakStorageImpl()), data(given.unsafeGetStorageImpl()->data()) {}

bool WatchedStorage::is_there() const noexcept {
  return !storage.expired() && storage._unsafe_get_target()->data() == data;
}

WatchedBuffer::WatchedBuffer(const WatchedCall& of, const at::Tensor& given, Use how, Value of_value)
    : WatchedStorage(given.storage()),
      call(&of),
      use(how),
      value(of_value),
      is_allocated(given.storage().data_ptr().get_deleter() == c10::GetCPUAllocator()->raw_deleter()),
      footprint(given),
      tensor(given.unsafeGetTensorImpl()),
      bytes(given.storage().nbytes()),
      numel(given.numel()) {}

bool WatchedBuffer::is_held_by_call_alone() const noexcept {
  return call->call != nullptr && storage.use_count() == 1 && c10::raw::intrusive_ptr::use_count(tensor) == 1;
}

bool WatchedBuffer::is_exchanged() const {
  const auto* const now = tensor->storage().unsafeGetStorageImpl();
  return now != storage._unsafe_get_target() || now->data() != data || now->nbytes() < bytes ||
         tensor->numel() != numel;
}

std::size_t WatchedBuffer::owned_bytes() const noexcept {
  const auto& bounds = footprint.bounds();
  const auto* const end = static_cast<const std::byte*>(data) + bytes;
  if (std::less<>{}(end, bounds.end)) return std::less<>{}(bounds.begin, end) ? ByteSpan{bounds.begin, end}.size() : 0;
  return is_allocated ? bounds.size() : readable_bytes(bounds);
}

bool WatchedBuffer::is_readable() const noexcept {
  return is_allocated || readable_bytes(footprint.bounds()) == footprint.bounds().size();
}

WatchedCall::WatchedCall(comm::Operation& made, const comm::GroupIdentity& of_group, int of_rank,
                         std::uint64_t sequence, std::pmr::memory_resource& memory)
    : call(&made),
      rank(of_rank),
      group(of_group.id),
      title(made, of_group, sequence),
      is_message(comm::is_point_to_point(made.type)),
      is_barrier(made.type == c10d::OpType::BARRIER),
      async(made.async_op),
      buffers(&memory) {
  buffers.reserve(made.inputs.size() + made.outputs.size());
  add_buffers(*this, made, of_group, buffers);
}

std::string describe(const CallTitle& title, const exec::CallSite& where) {
  const auto place = where.describe();
  return place.empty() ? title.text() : fmt::format("{} (called at {})", title.text(), place);
}

std::string describe(const WatchedBuffer& buffer) {
  const auto& call = *buffer.call;
  const auto* const role = buffer.use == Use::both ? "tensor" : buffer.use == Use::input ? "input" : "output";
  const auto alike = std::ranges::count_if(call.buffers, [&](const auto& other) { return other.use == buffer.use; });
  const auto* const article = alike == 1 ? "the" : buffer.use == Use::both ? "a" : "an";
  return fmt::format("{} {} of {}", article, role, describe(call.title, call.where));
}

}  // namespace rehearse::sim
