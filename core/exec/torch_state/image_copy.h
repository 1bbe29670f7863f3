// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "exec/torch_state/tls_layout.h"

namespace rehearse::torch_state {

// Copies a fixed set of ranges between the thread-local blocks of one thread and a packed image.
//
// The ranges are cut into pieces of one width each, so that a copy is a loop without branches; the last piece
// of a range overlaps its neighbour where the width does not divide the range. An image is therefore only
// good for the copier's own load(), not for reading.
class ImageCopy {
 public:
  ImageCopy() = default;

  // `blocks` holds the start of each module's block.
  ImageCopy(std::span<const TlsRange> ranges, std::span<std::byte* const> blocks);

  std::size_t image_bytes() const noexcept;

  void save(std::byte* image) const noexcept { save_(*this, image); }
  void load(const std::byte* image) const noexcept { load_(*this, image); }

  // Whether any byte of the ranges is not zero; and sets all of them to zero.
  bool any_set() const noexcept { return any_set_(*this); }
  void clear() const noexcept;

 private:
  template <std::size_t Width>
  static void save_pieces(std::span<std::byte* const> pieces, std::byte*& image) noexcept;
  template <std::size_t Width>
  static void load_pieces(std::span<std::byte* const> pieces, const std::byte*& image) noexcept;

  template <std::size_t Width, class Word>
  static bool any_piece_set(std::span<std::byte* const> pieces) noexcept;

  static void save_baseline(const ImageCopy& self, std::byte* image) noexcept;
  static void load_baseline(const ImageCopy& self, const std::byte* image) noexcept;
  static bool any_set_baseline(const ImageCopy& self) noexcept;
#if defined(__x86_64__)
  static void save_avx2(const ImageCopy& self, std::byte* image) noexcept;
  static void load_avx2(const ImageCopy& self, const std::byte* image) noexcept;
  static bool any_set_avx2(const ImageCopy& self) noexcept;
#endif

  std::vector<std::byte*> wide_;   // pieces of kWide bytes
  std::vector<std::byte*> words_;  // of 8 bytes
  std::vector<std::byte*> bytes_;  // of 1 byte
  void (*save_)(const ImageCopy&, std::byte*) noexcept = save_baseline;
  void (*load_)(const ImageCopy&, const std::byte*) noexcept = load_baseline;
  bool (*any_set_)(const ImageCopy&) noexcept = any_set_baseline;
};

}  // namespace rehearse::torch_state
