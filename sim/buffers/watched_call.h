// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <vector>

#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/operation.h>

#include "buffer_index.h"
#include "footprint.h"

namespace rehearse::sim {

struct WatchedCall;

// A storage, and the memory that it had when the call was made. Keeps neither the storage nor the memory alive.
struct WatchedStorage {
  explicit WatchedStorage(const c10::Storage& given);

  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  const void* data;

  // True if the storage still holds that memory.
  bool is_there() const noexcept;
};

// A tensor of a call, with its memory at the time of the call.
struct WatchedBuffer : WatchedStorage {
  enum class Use : std::uint8_t { input, output, both };
  // The call's effect on the tensor's value.
  enum class Value : std::uint8_t {
    taken,      // reads it
    replaced,   // writes a new value, and does not read the old one
    undefined,  // reads it, and leaves arbitrary values in the tensor
  };

  WatchedBuffer(const WatchedCall& call, const at::Tensor& tensor, Use how, Value of_value);

  const WatchedCall* call;
  Use use;
  Value value;
  bool is_allocated;          // LibTorch's allocator gave the memory, so the storage knows its size
  bool others_write = false;  // another call may write it, so changed bytes after the end are no error
  Footprint footprint;
  c10::TensorImpl* tensor;  // the call keeps it alive while the call is under way
  std::size_t bytes;
  std::int64_t numel;
  std::uint64_t hash = 0;
  std::uint64_t order = 0;  // in the index of buffers
  IndexedSpans spans;       // in that index

  bool reads() const noexcept { return use != Use::output; }
  bool writes() const noexcept { return use != Use::input; }
  // True if only the call holds the tensor, and only the tensor holds its memory. False if the call's Work is gone.
  bool is_held_by_call_alone() const noexcept;
  // True if the tensor no longer has the memory and the size that it had when the call was made. The call must be under
  // way.
  bool is_exchanged() const;
  // The number of bytes within the footprint's bounds that belong to the tensor's storage. If the size of the memory is
  // unknown, the number of readable bytes.
  std::size_t owned_bytes() const noexcept;
  // True if all of the memory is still mapped.
  bool is_readable() const noexcept;
};

// The data for a call's name in reports; only reports turn it into text.
struct CallTitle {
  CallTitle(const comm::Operation& call, const comm::GroupIdentity& of_group, std::uint64_t sequence);

  const comm::GroupIdentity* group;
  std::uint64_t sequence;
  const std::string* label;
  const comm::PayloadName* payload;
  int peer;
  int tag;
  c10d::OpType type;

  // For example "allreduce #7 on group "world"". The world's communicators must still exist.
  std::string text() const;
};

// Hooks for boost::intrusive: each call is in the list of its rank. Calls that have ended are also in an ordered set,
// and so are calls whose Work the rank has dropped.
using AmongCalls = boost::intrusive::list_base_hook<>;
using AmongEnded = boost::intrusive::set_base_hook<boost::intrusive::tag<struct Ended>>;
using AmongDropped = boost::intrusive::set_base_hook<boost::intrusive::tag<struct Dropped>>;

// One rank's call, from its start until the rank knows of its end. It must not move, because buffers point to it.
struct WatchedCall : comm::CallTrace, AmongCalls, AmongEnded, AmongDropped {
  // `group` and `memory` must outlive this object.
  WatchedCall(comm::Operation& call, const comm::GroupIdentity& group, int rank, std::uint64_t sequence,
              std::pmr::memory_resource& memory);
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

  comm::Operation* call;  // null: the Work is gone, so nobody can ask about the call
  int rank;               // in the world
  std::uint32_t group;
  CallTitle title;
  std::uint64_t number = 0;  // counts the world's calls in the order in which they are made
  exec::CallSite where;      // empty unless call sites are captured
  bool is_message;
  bool is_barrier;
  bool under_way = true;
  bool async;  // false: the caller relies on the result without a wait
  std::pmr::vector<WatchedBuffer> buffers;

  // True if this call ends before `later`, a later call of the same rank. A back end carries out the collectives of a
  // group in order. Messages have no such order.
  bool ends_before(const WatchedCall& later) const noexcept {
    return group == later.group && !is_message && !later.is_message;
  }

  friend bool operator<(const WatchedCall& a, const WatchedCall& b) noexcept { return a.number < b.number; }
};

// For example "the tensor of allreduce #7 on group "world" (called at train.cpp:41 in step)".
std::string describe(const WatchedBuffer& buffer);
// For example "allreduce #7 on group "world" (called at train.cpp:41 in step)".
std::string describe(const CallTitle& title, const exec::CallSite& where);

}  // namespace rehearse::sim
