// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string_view>
#include <vector>

#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// A collective whose ranks have all arrived and agree, or a matched send and receive. If the calls have parts, all of
// them have the same number of parts, and the i-th parts of all calls form a collective of their own. The transfer is
// done when these collectives are done.
struct Transfer {
  c10d::OpType type = c10d::OpType::UNKNOWN;  // SEND for a matched pair
  std::uint64_t sequence = 0;
  const GroupIdentity* group = nullptr;
  std::span<Operation* const> calls;  // by rank in the group; for a matched pair: {send, recv}
};

// Visits the parts of a transfer in order, each as its own transfer: visit(index, part, calls). `calls` are the part's
// calls; a visitor may replace its entries for the duration of the visit. Visits nothing if the calls have no parts.
template <class Visit>
void for_each_part(const Transfer& transfer, const Visit& visit) {
  std::vector<Operation*> calls(transfer.calls.size());
  for (std::size_t i = 0; i < transfer.calls.front()->parts.size(); ++i) {
    for (std::size_t rank = 0; rank < calls.size(); ++rank) calls[rank] = &transfer.calls[rank]->parts[i];
    Transfer part = transfer;
    part.type = calls.front()->type;
    part.calls = calls;
    visit(i, part, std::span<Operation*>(calls));
  }
}

// Notified of a transfer's launch and end, at most once each and in this order. on_failed() replaces the notifications
// that are still due. Called on the executor's thread in any context (the scheduler's own, or the fiber of the last
// rank to arrive), so it must not run user code.
class Completion {
 public:
  virtual ~Completion() = default;

  // The transfer has been launched on the devices. A call with an Operation::end has now ended for its waiters, because
  // what the waiters launch next is ordered after the call. A call without one ends only at on_done(). Either all calls
  // of a transfer have an end, or none.
  virtual void on_launched() noexcept = 0;

  // The transfer's tensors are neither read nor written any more.
  virtual void on_done() noexcept = 0;

  // The transfer was launched, or should have been, and will not end. `why`: the exception for waits, and for futures
  // that are not marked yet. The fabric keeps the tensors until nothing writes to them.
  virtual void on_failed(std::exception_ptr why) noexcept = 0;

  // For a fabric without devices.
  void on_complete() noexcept {
    on_launched();
    on_done();
  }
};

// Moves the bytes. `RankBackend` describes and checks an operation; a Fabric carries it out.
//
// The transfer and the completion must stay valid until on_done(), on_failed() or cancel() has returned. launch() does
// not block and may complete at once. Inputs may be read, and outputs written, at any time between launch() and
// completion. Not thread safe. The calls of all ranks of a Transfer must be in this process.
class Fabric {
 public:
  virtual ~Fabric() = default;

  // The types of devices whose tensors the fabric moves; groups accept calls for these. Constant.
  virtual std::span<const c10::DeviceType> device_types() const noexcept;

  // Whether a message may have fewer elements than the receiving tensor. If true, a shorter message fills the tensor's
  // first elements, and the other elements stay. If false, the pair is a mismatch. Constant.
  virtual bool takes_shorter_messages() const noexcept { return false; }

  // A group's first rank opens the group before any call, and the end of the world closes it. `parent`: the group from
  // which it was split or shrunk, or whose companion it is; null: none. A fabric without state per group need not
  // override these.
  virtual void open(const GroupIdentity& /*group*/, const GroupIdentity* /*parent*/) {}
  virtual void close(const GroupIdentity& /*group*/) noexcept {}

  // `rank` (in the group) has aborted the group: its operations in flight have been withdrawn, and it makes no more
  // calls.
  virtual void abort(const GroupIdentity& /*group*/, int /*rank*/) noexcept {}

  // Prepares each call before it is matched, in the fiber of its rank; `rank` is a rank in the group. A coalesced call
  // is prepared when it is made, and again as part of the whole. Throws c10::Error, with the text for the user, if the
  // fabric cannot carry out the call (dtype, reduce op, device, layout). A fabric of devices notes the caller's streams
  // here and makes Operation::end.
  virtual void prepare(Operation& call, const GroupIdentity& group, int rank) = 0;

  virtual void launch(const Transfer& transfer, Completion& done) = 0;

  // The world, or a call's time, is over: `done` gets no more notifications. Returns when nothing reads or writes the
  // tensors any more. Ignores an unknown `done`.
  virtual void cancel(Completion& done) noexcept = 0;
};

}  // namespace rehearse::comm
