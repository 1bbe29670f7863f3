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

// The memory that a storage has had. Keeps none of it.
struct WatchedStorage {
  explicit WatchedStorage(const c10::Storage& given);

  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  const void* data;

  // Has the memory not been freed since, or taken out of the storage?
  bool is_there() const noexcept;
};

// A tensor of a call: its memory as it was when the call was made.
struct WatchedBuffer : WatchedStorage {
  enum class Use : std::uint8_t { input, output, both };
  // What the call does with the value that the tensor has, and has afterwards.
  enum class Value : std::uint8_t {
    taken,     // it reads it
    replaced,  // it writes another one without reading it
    spoilt,    // it reads it, and leaves it open what is there afterwards
  };

  WatchedBuffer(const WatchedCall& call, const at::Tensor& tensor, Use how, Value of_value);

  const WatchedCall* call;
  Use use;
  Value value;
  bool is_allocated;          // by LibTorch's allocator, so that the storage knows its size
  bool others_write = false;  // another call may, so that its bytes change rightly once this call has ended
  Footprint footprint;
  c10::TensorImpl* tensor;  // the call keeps it while it is under way
  std::size_t bytes;
  std::int64_t numel;
  std::uint64_t hash = 0;
  std::uint64_t order = 0;  // in the index of buffers
  IndexedPlaces places;     // in that index

  bool writes() const noexcept { return use != Use::input; }
  // Does nobody but the call hold the tensor, and the tensor alone its memory? Of a call about which one can ask.
  bool is_held_by_call_alone() const noexcept;
  // The call is under way: has the tensor got other memory, or another size?
  bool is_exchanged() const;
  // How many of the bytes within its bounds are its own, or can be read where that is all that is known.
  std::size_t owned_bytes() const noexcept;
  // Is all of it mapped still?
  bool is_readable() const noexcept;
};

// What reports call a call; made into text only for them.
struct CallTitle {
  CallTitle(const comm::Operation& call, const comm::GroupIdentity& of_group, std::uint64_t sequence);

  const comm::GroupIdentity* group;
  std::uint64_t sequence;
  const std::string* label;
  const comm::PayloadName* payload;
  int peer;
  int tag;
  c10d::OpType type;

  // "allreduce #7 on group "world"". While the world's communicators are there.
  std::string text() const;
};

// A call is among those of its rank, and in order among those that have ended, or whose work has been dropped.
using AmongCalls = boost::intrusive::list_base_hook<>;
using AmongEnded = boost::intrusive::set_base_hook<boost::intrusive::tag<struct Ended>>;
using AmongDropped = boost::intrusive::set_base_hook<boost::intrusive::tag<struct Dropped>>;

// One rank's call, from when it is made until the rank knows of its end. Stays where it is: buffers know it.
struct WatchedCall : comm::CallTrace, AmongCalls, AmongEnded, AmongDropped {
  // `group` and `memory` outlive it.
  WatchedCall(comm::Operation& call, const comm::GroupIdentity& group, int rank, std::uint64_t sequence,
              std::pmr::memory_resource& memory);
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

  comm::Operation* call;  // null: nobody can ask about it any more
  int rank;               // of the world
  std::uint32_t group;
  CallTitle title;
  std::uint64_t number = 0;  // of the world's calls, in the order in which they are made
  exec::CallSite where;      // empty unless captured
  bool is_message;
  bool is_barrier;
  bool under_way = true;
  bool async;  // else its caller relies on it without a wait
  std::pmr::vector<WatchedBuffer> buffers;

  friend bool operator<(const WatchedCall& a, const WatchedCall& b) noexcept { return a.number < b.number; }
};

// "the input of allreduce #7 on group "world" (called at train.cpp:41 in step)"
std::string describe(const WatchedBuffer& buffer);
// "allreduce #7 on group "world" (called at train.cpp:41 in step)"
std::string describe(const CallTitle& title, const exec::CallSite& where);

}  // namespace rehearse::sim
