// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include <rehearse/exec/call_site.h>

#include "footprint.h"
#include "watched_call.h"

namespace rehearse::sim {

// A call that leaves a tensor without a defined value on this rank: reduce() on all ranks but the root.
struct SpoilingCall {
  CallTitle title;
  exec::CallSite where;  // empty unless captured
};

// The bytes of one rank whose value such a call leaves open, until the rank writes them or frees the memory.
class SpoiltMemory {
 public:
  bool empty() const noexcept { return spans_.empty(); }

  void spoil(const WatchedBuffer& buffer, const SpoilingCall& call);
  void write(const Footprint& bytes);

  // The call that has spoilt one of the bytes; null: there is none.
  const SpoilingCall* find(const Footprint& bytes);

 private:
  struct Memory {
    WatchedStorage storage;
    SpoilingCall call;
  };
  struct Span {
    const std::byte* end;
    std::shared_ptr<const Memory> memory;
  };
  using Spans = std::map<const std::byte*, Span>;  // by their first byte; they do not overlap

  Spans::iterator first_that_ends_after(const std::byte* begin);
  void cut(const ByteSpan& bytes);
  void drop_freed();

  Spans spans_;
  std::size_t spans_most_ = 1'024;
};

}  // namespace rehearse::sim
