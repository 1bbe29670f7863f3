// SPDX-License-Identifier: BSD-3-Clause
#include "exec/torch_state/image_copy.h"

#include <cstring>

namespace rehearse::torch_state {
namespace {

constexpr std::size_t kWide = 32;

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
#endif

}  // namespace rehearse::torch_state
