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
struct UndefiningCall {
  CallTitle title;
  exec::CallSite where;  // empty unless call sites are captured
};

// The bytes of one rank that such calls left undefined. They stay here until the rank writes them or frees the memory.
class UndefinedMemory {
 public:
  bool empty() const noexcept { return spans_.empty(); }

  void mark_undefined(const WatchedBuffer& buffer, const UndefiningCall& call);
  void write(const Footprint& bytes);

  // The call that left one of the bytes undefined. Null: none of the bytes is undefined, or the footprint consists of
  // too many separate pieces of memory (see Footprint::runs()).
  const UndefiningCall* find(const Footprint& bytes);

 private:
  struct Memory {
    WatchedStorage storage;
    UndefiningCall call;
  };
  struct Span {
    const std::byte* end;
    std::shared_ptr<const Memory> memory;
  };
  using Spans = std::map<const std::byte*, Span>;  // by first byte; spans do not overlap

  Spans::iterator first_that_ends_after(const std::byte* begin);
  void cut(const ByteSpan& bytes);
  void drop_freed();

  Spans spans_;
  std::size_t spans_most_ = 1'024;
};

}  // namespace rehearse::sim
