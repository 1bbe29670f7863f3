// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "torch_state/tls/tls_layout.h"

namespace rehearse::torch_state {

// Exchanges the state of fibers in the thread-local blocks of one thread.
//
// LibTorch keeps 1.4 KB per thread, and nearly all of it always has the values of a new thread, in every fiber. So the
// ranges are divided into pieces of 32 bytes. A piece that a switch has seen to differ from its initial value is "in
// use" from then on, for all fibers. Switches copy only the pieces in use. An image contains these pieces, in the order
// in which they came into use. If a piece came into use after an image was saved, the fiber of that image has the
// piece's initial value. A switch compares the other pieces, which are in the thread's own cache, with their initial
// values. It touches one cache line of a fiber's image in idle code, and eight in the middle of a backward pass.
//
// If the size of a range is not a multiple of 32, its last piece overlaps the previous one. That is harmless as long as
// all pieces are saved before any is loaded, because both pieces have the same bytes in their common part.
class TlsExchange {
 public:
  static constexpr std::size_t kPieceBytes = 32;

  TlsExchange() = default;

  // `blocks`: the start of each module's block in this thread; the blocks must outlive this object. `initial`: the
  // initial contents of the blocks, which are copied.
  TlsExchange(std::span<const TlsRange> ranges, std::span<std::byte* const> blocks,
              std::span<const std::byte* const> initial);

  // The largest size of an image. Images need no alignment, but switches are faster if pieces do not cross cache lines.
  std::size_t image_bytes() const noexcept;

  // Makes an image of a new thread's state.
  void create(std::byte* image) const noexcept;

  // Saves the live state into `out` and makes `in` live.
  void exchange(std::byte* out, const std::byte* in) noexcept { exchange_(*this, out, in); }

  // Like exchange(), without vector instructions.
  static void exchange_portable(TlsExchange& self, std::byte* out, const std::byte* in) noexcept;

  // The number of pieces that each exchange copies. For tests: nothing else shows this number.
  std::size_t pieces_in_use() const noexcept { return used_; }

 private:
  struct alignas(kPieceBytes) Bytes {
    std::array<std::byte, kPieceBytes> bytes{};
    bool operator==(const Bytes&) const = default;
  };
  struct SmallRange {
    std::byte* live;
    std::size_t bytes;
    std::size_t at;  // offset in initial_small_ and in images
  };

  void add(std::span<std::byte> live, const std::byte* initial);
  bool differs(std::size_t piece) const noexcept;
  void take_into_use() noexcept;
  void swap_pieces(std::size_t a, std::size_t b) noexcept;
  void exchange_small(std::byte* out, const std::byte* in) const noexcept;
  void exchange_used(std::byte* out, const std::byte* in) const noexcept;
  static void exchange_avx2(TlsExchange& self, std::byte* out, const std::byte* in) noexcept;

  // First the pieces in use, then those whose initial value is zero, then the others.
  std::vector<std::byte*> live_;
  std::vector<Bytes> initial_;
  std::size_t used_ = 0;
  std::size_t zeros_end_ = 0;

  // Ranges shorter than a piece are part of every image. LibTorch 2.11 for x86-64 has none.
  std::vector<SmallRange> small_;
  std::vector<std::byte> initial_small_;

  void (*exchange_)(TlsExchange&, std::byte*, const std::byte*) noexcept = exchange_portable;
};

}  // namespace rehearse::torch_state
