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

// A collective whose ranks are all there and agree, or a matched send and receive. Where the calls have parts, all have
// as many: part i of all calls is a collective of its own, and the transfer is done when all of them are.
struct Transfer {
  c10d::OpType type = c10d::OpType::UNKNOWN;  // SEND for a matched pair
  std::uint64_t sequence = 0;
  const GroupIdentity* group = nullptr;
  std::span<Operation* const> calls;  // by rank in the group; for a pair: {send, recv}
};

// Visits the parts of a transfer in order, each as a transfer of its own: visit(index, part, calls). What stands in
// `calls`, those of the part, may be exchanged for that visit. A transfer whose calls have none is not visited.
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

// Told of a transfer's two ends, of each at most once and in this order, on the executor's thread, in any context (the
// scheduler's own, or the fiber of the rank that came last): it must not run user code. on_failed() comes in place of
// those that have not been told.
class Completion {
 public:
  virtual ~Completion() = default;

  // The devices have been given it. Calls with an Operation::end are over for those who wait for them: what they launch
  // next is ordered behind it. For calls without one nothing ends before on_done(). Of a transfer's calls all have an
  // end, or none.
  virtual void on_launched() noexcept = 0;

  // Its tensors are neither read nor written any more.
  virtual void on_done() noexcept = 0;

  // What the devices have been given, or should have been, does not come to its end: `why` is what waits throw, and
  // what futures hold that have not been marked. Its tensors are the fabric's until nothing writes them.
  virtual void on_failed(std::exception_ptr why) noexcept = 0;

  // Both at once: for a fabric of the host.
  void on_complete() noexcept {
    on_launched();
    on_done();
  }
};

// What moves the bytes. `RankBackend` describes and checks an operation; a Fabric carries it out: FakeFabric in
// memory and virtual time.
//
// The transfer and the completion stay valid until on_done() or on_failed() returns, or cancel() has returned. launch()
// does not block and may complete at once. Inputs may be read, and outputs written, at any time between launch() and
// completion. Not thread safe. A Transfer needs the calls of all ranks in this process.
class Fabric {
 public:
  virtual ~Fabric() = default;

  // The devices whose tensors it moves: groups take calls for these. Does not change.
  virtual std::span<const c10::DeviceType> device_types() const noexcept;

  // May a message have fewer elements than the tensor that receives it? Then it fills the tensor's first elements, and
  // the rest stays. If not, such a pair is a mismatch. Does not change.
  virtual bool takes_shorter_messages() const noexcept { return false; }

  // A group's first rank opens it before any call, and the end of its world closes it. `parent`: the group from which
  // it was split or shrunk, or whose companion it is; null: none. A fabric that keeps nothing by group needs none of
  // these.
  virtual void open(const GroupIdentity& /*group*/, const GroupIdentity* /*parent*/) {}
  virtual void close(const GroupIdentity& /*group*/) noexcept {}

  // `rank` (within the group) has aborted it: what it had in flight has been withdrawn, and it makes no more calls.
  virtual void abort(const GroupIdentity& /*group*/, int /*rank*/) noexcept {}

  // Told of each call before it is matched, in the fiber of its rank; `rank` is that within the group. Told of a
  // coalesced call when it is called, and again as part of the whole. Throws c10::Error, with the text that the user
  // meets, where it cannot carry the call out (dtype, reduce op, device, layout). A fabric of devices notes the
  // caller's streams here and makes Operation::end.
  virtual void prepare(Operation& call, const GroupIdentity& group, int rank) = 0;

  virtual void launch(const Transfer& transfer, Completion& done) = 0;

  // The world, or a call's time, is over: `done` is not told any more. Returns when nothing is read or written any
  // more. Unknown ones are ignored.
  virtual void cancel(Completion& done) noexcept = 0;
};

}  // namespace rehearse::comm
