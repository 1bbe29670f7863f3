// SPDX-License-Identifier: BSD-3-Clause
#include "exec/torch_state/image_copy.h"

#include <cstdint>
#include <cstring>

namespace rehearse::torch_state {
namespace {

constexpr std::size_t kWide = 32;
using Wide [[gnu::vector_size(32)]] = long long;

void tile(std::byte* begin, std::size_t bytes, std::size_t width, std::vector<std::byte*>& pieces) {
  std::size_t at = 0;
  for (; at + width <= bytes; at += width) pieces.push_back(begin + at);
  if (at < bytes) pieces.push_back(begin + bytes - width);
}

}  // namespace

ImageCopy::ImageCopy(std::span<const TlsRange> ranges, std::span<std::byte* const> blocks) {
  for (const TlsRange& range : ranges) {
    std::byte* begin = blocks[range.module] + range.offset;
    if (range.bytes >= kWide)
      tile(begin, range.bytes, kWide, wide_);
    else if (range.bytes >= 8)
      tile(begin, range.bytes, 8, words_);
    else
      tile(begin, range.bytes, 1, bytes_);
  }
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    save_ = save_avx2;
    load_ = load_avx2;
    any_set_ = any_set_avx2;
  }
#endif
}

std::size_t ImageCopy::image_bytes() const noexcept {
  return wide_.size() * kWide + words_.size() * 8 + bytes_.size();
}

template <std::size_t Width>
[[gnu::always_inline]] inline void ImageCopy::save_pieces(std::span<std::byte* const> pieces,
                                                          std::byte*& image) noexcept {
  for (const std::byte* piece : pieces) {
    __builtin_memcpy(image, piece, Width);
    image += Width;
  }
}

template <std::size_t Width>
[[gnu::always_inline]] inline void ImageCopy::load_pieces(std::span<std::byte* const> pieces,
                                                          const std::byte*& image) noexcept {
  for (std::byte* piece : pieces) {
    __builtin_memcpy(piece, image, Width);
    image += Width;
  }
}

template <std::size_t Width, class Word>
[[gnu::always_inline]] inline bool ImageCopy::any_piece_set(std::span<std::byte* const> pieces) noexcept {
  Word all{};
  for (const std::byte* piece : pieces) {
    Word word;
    __builtin_memcpy(&word, piece, Width);
    all |= word;
  }
  if constexpr (Width == kWide)
    return (all[0] | all[1] | all[2] | all[3]) != 0;
  else
    return all != 0;
}

void ImageCopy::clear() const noexcept {
  for (std::byte* piece : wide_) std::memset(piece, 0, kWide);
  for (std::byte* piece : words_) std::memset(piece, 0, 8);
  for (std::byte* piece : bytes_) *piece = std::byte{0};
}

void ImageCopy::save_baseline(const ImageCopy& self, std::byte* image) noexcept {
  save_pieces<kWide>(self.wide_, image);
  save_pieces<8>(self.words_, image);
  save_pieces<1>(self.bytes_, image);
}

void ImageCopy::load_baseline(const ImageCopy& self, const std::byte* image) noexcept {
  load_pieces<kWide>(self.wide_, image);
  load_pieces<8>(self.words_, image);
  load_pieces<1>(self.bytes_, image);
}

bool ImageCopy::any_set_baseline(const ImageCopy& self) noexcept {
  return any_piece_set<kWide, Wide>(self.wide_) || any_piece_set<8, std::uint64_t>(self.words_) ||
         any_piece_set<1, std::uint8_t>(self.bytes_);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void ImageCopy::save_avx2(const ImageCopy& self, std::byte* image) noexcept {
  save_pieces<kWide>(self.wide_, image);
  save_pieces<8>(self.words_, image);
  save_pieces<1>(self.bytes_, image);
}

[[gnu::target("avx2")]] void ImageCopy::load_avx2(const ImageCopy& self, const std::byte* image) noexcept {
  load_pieces<kWide>(self.wide_, image);
  load_pieces<8>(self.words_, image);
  load_pieces<1>(self.bytes_, image);
}

[[gnu::target("avx2")]] bool ImageCopy::any_set_avx2(const ImageCopy& self) noexcept {
  return any_piece_set<kWide, Wide>(self.wide_) || any_piece_set<8, std::uint64_t>(self.words_) ||
         any_piece_set<1, std::uint8_t>(self.bytes_);
}
#endif

}  // namespace rehearse::torch_state
