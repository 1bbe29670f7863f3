// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <c10/util/SmallVector.h>

#include "footprint.h"

namespace rehearse::sim {

struct WatchedBuffer;

// A part of a buffer's memory in a BufferIndex, and a node of its tree.
struct IndexedBytes {
  ByteSpan bytes;
  WatchedBuffer* buffer;
  std::uint32_t priority;  // never higher than the parent's

  // The greatest ends in the subtree of this node.
  const std::byte* last_end = nullptr;
  const std::byte* last_written_end = nullptr;  // among written buffers; null: there are none
  IndexedBytes* left = nullptr;
  IndexedBytes* right = nullptr;
};

// The spans of a buffer in an index: one for each run of its bytes, or a single one if it has many runs.
using IndexedSpans = c10::SmallVector<IndexedBytes, 1>;

// Finds buffers by the bytes that they take. A treap by address: each node knows how far the bytes in its subtree
// reach. Adding, removing, and a search that finds nothing take logarithmic time, whatever overlaps. Addresses shape
// the tree, but results come in the order in which buffers were added. Cannot be copied, because the nodes lie in the
// buffers.
class BufferIndex {
 public:
  enum class Which : std::uint8_t { written, all };

  BufferIndex() = default;
  BufferIndex(const BufferIndex&) = delete;
  BufferIndex& operator=(const BufferIndex&) = delete;

  // The buffer must stay at its address until it is removed.
  void add(WatchedBuffer& buffer);

  // Does nothing if the buffer is not in the index.
  void remove(WatchedBuffer& buffer) noexcept;

  // Buffers that have a byte in common with `bytes`, oldest first.
  std::vector<WatchedBuffer*> find(const Footprint& bytes, Which which) const;

  // Buffers with a span that overlaps `bytes`, oldest first.
  std::vector<WatchedBuffer*> find(const ByteSpan& bytes, Which which) const;

 private:
  IndexedBytes* root_ = nullptr;
  std::uint64_t added_ = 0;
};

}  // namespace rehearse::sim
