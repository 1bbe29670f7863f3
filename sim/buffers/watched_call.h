// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/operation.h>

#include "footprint.h"

namespace rehearse::sim {

// A tensor of a call: its memory as it was when the call was made. Keeps none of it.
struct WatchedBuffer {
  enum class Use : std::uint8_t { input, output, both };
  // What the call does with the value that the tensor has, and has afterwards.
  enum class Value : std::uint8_t {
    taken,     // it reads it
    replaced,  // it writes another one without reading it
    spoilt,    // it reads it, and leaves it open what is there afterwards
  };

  WatchedBuffer(const at::Tensor& tensor, Use how, Value of_value);

  Use use;
  Value value;
  Footprint footprint;
  const c10::TensorImpl* tensor;  // the call keeps it while it is under way
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  const void* data;
  std::size_t bytes;
  std::int64_t numel;
  std::uint64_t hash = 0;

  bool writes() const noexcept { return use != Use::input; }
  // Has the memory not been freed since, or taken out of the storage?
  bool is_there() const noexcept;
  // Of a call that is under way: has the tensor got other memory, or another size?
  bool is_exchanged() const;
};

// One rank's call, from when it is made until the rank knows of its end.
struct WatchedCall {
  WatchedCall(const comm::Operation& call, const comm::GroupIdentity& group, int rank, std::uint64_t sequence);

  const comm::Operation* call;  // null: nobody can ask about it any more
  int rank;                     // of the world
  std::uint32_t group;
  std::string title;     // "allreduce #7 on group "world"", as reports have it
  exec::CallSite where;  // empty unless captured
  bool is_message;
  bool is_barrier;
  bool under_way = true;
  bool async;  // else its caller relies on it without a wait
  std::vector<WatchedBuffer> buffers;
};

// "the input of allreduce #7 on group "world" (called at train.cpp:41 in step)"
std::string describe(const WatchedBuffer& buffer, const WatchedCall& call);
// "allreduce #7 on group "world" (called at train.cpp:41 in step)"
std::string describe(const WatchedCall& call);

}  // namespace rehearse::sim
