// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <c10/util/SmallVector.h>

#include "footprint.h"

namespace rehearse::sim {

struct WatchedBuffer;

// A piece of a buffer's memory in a BufferIndex: a node of its tree.
struct IndexedBytes {
  ByteSpan bytes;
  WatchedBuffer* buffer;
  std::uint32_t priority;  // no parent has a lower one

  // The last ends of the node and all nodes below it.
  const std::byte* last_end = nullptr;
  const std::byte* last_written_end = nullptr;  // null: none is written
  IndexedBytes* left = nullptr;
  IndexedBytes* right = nullptr;
};

// The places of a buffer in an index: one for each run of its bytes, or one for all where it has many runs.
using IndexedPlaces = c10::SmallVector<IndexedBytes, 1>;

// Finds buffers by the bytes that they take: a treap by address, each node of which knows how far the bytes below it
// reach. Adding, removing and finding nothing take logarithmic time, whatever overlaps. Addresses shape the tree, but
// what it finds is in the order in which it came. Not copied: nodes are in the buffers.
class BufferIndex {
 public:
  enum class Which : std::uint8_t { written, all };

  BufferIndex() = default;
  BufferIndex(const BufferIndex&) = delete;
  BufferIndex& operator=(const BufferIndex&) = delete;

  // It stays where it is until it is removed.
  void add(WatchedBuffer& buffer);

  // Nothing happens unless it is in the index.
  void remove(WatchedBuffer& buffer) noexcept;

  // Those with a byte in `bytes`, oldest first.
  std::vector<WatchedBuffer*> find(const Footprint& bytes, Which which) const;

  // Those whose pieces reach into `bytes`, oldest first.
  std::vector<WatchedBuffer*> find(const ByteSpan& bytes, Which which) const;

 private:
  IndexedBytes* root_ = nullptr;
  std::uint64_t added_ = 0;
};

}  // namespace rehearse::sim
