// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <rehearse/comm/operation.h>

namespace rehearse::comm {

// A collective whose ranks are all there and agree, or a matched send and receive. Where the calls have parts, all have
// as many: part i of all calls is a collective of its own, and the transfer is done when all of them are.
struct Transfer {
  c10d::OpType type = c10d::OpType::UNKNOWN;  // SEND for a matched pair
  std::uint64_t sequence = 0;
  std::string_view group;             // its name
  std::span<const int> global_ranks;  // of the group's members
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

// Told when a transfer is done. Called at most once, on the executor's thread, in any context (the scheduler's own,
// or the fiber of the rank that came last): it must not run user code.
class Completion {
 public:
  virtual ~Completion() = default;
  virtual void on_complete() noexcept = 0;
};

// What moves the bytes. `RankBackend` describes and checks an operation; a Fabric carries it out: FakeFabric in
// memory and virtual time.
//
// The transfer and the completion stay valid until on_complete() returns or cancel() was called. launch() does not
// block and may complete at once. Inputs may be read, and outputs written, at any time between launch() and
// completion. Not thread safe.
class Fabric {
 public:
  virtual ~Fabric() = default;

  // Can this back end carry the operation out (dtype, reduce op, device, layout)? Throws c10::Error with the text
  // that the user meets, before anybody waits. Called for each rank's call.
  virtual void validate(const Operation& call, int group_size) const = 0;

  virtual void launch(const Transfer& transfer, Completion& done) = 0;

  // The world, or a call's time, is over: nothing is written any more, `done` not told. Unknown ones are ignored.
  virtual void cancel(Completion& done) noexcept = 0;
};

}  // namespace rehearse::comm
