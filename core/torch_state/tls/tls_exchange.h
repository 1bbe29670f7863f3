// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "torch_state/tls/tls_layout.h"

namespace rehearse::torch_state {

// Exchanges what fibers keep in the thread-local blocks of one thread.
//
// Nearly all of the 1.4 KB that LibTorch keeps for a thread has a new thread's values, in every fiber and all the time.
// So the ranges are cut into pieces of 32 bytes, and a piece is copied only once it has been seen to differ from what
// a new thread has: it is then "in use", for all fibers and for good. An image holds the pieces in use, in the order
// in which they came into use; those that came later than the image are in it what a new thread has. A switch looks at
// all pieces, which the thread's own cache holds, and touches no more of a fiber's image than the program needs: one
// cache line when nothing happens, eight in the middle of a backward pass.
//
// The last piece of a range overlaps its neighbour where 32 does not divide the range. That is harmless as long as all
// pieces are saved before any is loaded: both of a pair hold the same bytes for what they share.
class TlsExchange {
 public:
  static constexpr std::size_t kPieceBytes = 32;

  TlsExchange() = default;

  // `blocks` holds the start of each module's block in this thread, `initial` what a new thread finds there; copied.
  TlsExchange(std::span<const TlsRange> ranges, std::span<std::byte* const> blocks,
              std::span<const std::byte* const> initial);

  // The most that an image takes. Images need no alignment, but are faster when their pieces lie within cache lines.
  std::size_t image_bytes() const noexcept;

  // An image of what a new thread finds.
  void create(std::byte* image) const noexcept;

  // Saves the live state into `out` and makes `in` live.
  void exchange(std::byte* out, const std::byte* in) noexcept { exchange_(*this, out, in); }

  // The same without vector instructions.
  static void exchange_portable(TlsExchange& self, std::byte* out, const std::byte* in) noexcept;

  std::size_t pieces_in_use() const noexcept { return used_; }

 private:
  struct alignas(kPieceBytes) Bytes {
    std::array<std::byte, kPieceBytes> bytes{};
    bool operator==(const Bytes&) const = default;
  };
  struct SmallRange {
    std::byte* live;
    std::size_t bytes;
    std::size_t at;  // in initial_small_ and in images
  };

  void add(std::span<std::byte> live, const std::byte* initial);
  bool differs(std::size_t piece) const noexcept;
  void take_into_use() noexcept;
  void swap_pieces(std::size_t a, std::size_t b) noexcept;
  void exchange_small(std::byte* out, const std::byte* in) const noexcept;
  void exchange_used(std::byte* out, const std::byte* in) const noexcept;
  static void exchange_avx2(TlsExchange& self, std::byte* out, const std::byte* in) noexcept;

  // The pieces in use first, then those whose initial value is zero, then the others.
  std::vector<std::byte*> live_;
  std::vector<Bytes> initial_;
  std::size_t used_ = 0;
  std::size_t zeros_end_ = 0;

  // Ranges shorter than a piece are in every image. LibTorch 2.11 for x86-64 has none.
  std::vector<SmallRange> small_;
  std::vector<std::byte> initial_small_;

  void (*exchange_)(TlsExchange&, std::byte*, const std::byte*) noexcept = exchange_portable;
};

}  // namespace rehearse::torch_state
