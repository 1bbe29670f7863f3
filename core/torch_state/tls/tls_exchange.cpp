// SPDX-License-Identifier: BSD-3-Clause
#include "torch_state/tls/tls_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <immintrin.h>

namespace rehearse::torch_state {
namespace {

constexpr std::size_t kPieceBytes = TlsExchange::kPieceBytes;

}  // namespace

TlsExchange::TlsExchange(std::span<const TlsRange> ranges, std::span<std::byte* const> blocks,
                         std::span<const std::byte* const> initial) {
  for (const TlsRange& range : ranges) {
    add({blocks[range.module] + range.offset, range.bytes}, initial[range.module] + range.offset);
  }
  for (std::size_t piece = 0; piece < live_.size(); ++piece) {
    if (initial_[piece] == Bytes{}) swap_pieces(piece, zeros_end_++);
  }
  if (__builtin_cpu_supports("avx2")) exchange_ = exchange_avx2;
}

void TlsExchange::add(std::span<std::byte> live, const std::byte* initial) {
  if (live.size() < kPieceBytes) {
    small_.push_back({live.data(), live.size(), initial_small_.size()});
    initial_small_.insert(initial_small_.end(), initial, initial + live.size());
    return;
  }
  for (std::size_t at = 0; at < live.size(); at += kPieceBytes) {
    const std::size_t start = std::min(at, live.size() - kPieceBytes);
    live_.push_back(live.data() + start);
    std::memcpy(initial_.emplace_back().bytes.data(), initial + start, kPieceBytes);
  }
}

void TlsExchange::swap_pieces(std::size_t a, std::size_t b) noexcept {
  std::swap(live_[a], live_[b]);
  std::swap(initial_[a], initial_[b]);
}

std::size_t TlsExchange::image_bytes() const noexcept {
  return sizeof used_ + initial_small_.size() + live_.size() * kPieceBytes;
}

void TlsExchange::create(std::byte* image) const noexcept {
  const std::size_t none = 0;
  std::memcpy(image, &none, sizeof none);
  std::copy(initial_small_.begin(), initial_small_.end(), image + sizeof none);
}

bool TlsExchange::differs(std::size_t piece) const noexcept {
  return std::memcmp(live_[piece], &initial_[piece], kPieceBytes) != 0;
}

void TlsExchange::take_into_use() noexcept {
  for (std::size_t piece = used_; piece < live_.size(); ++piece) {
    if (!differs(piece)) continue;
    // Keep the order of `live_`. A zero piece swaps with the first zero piece. Another piece first swaps with the first
    // of the others, and then with the first zero piece.
    if (piece >= zeros_end_) {
      swap_pieces(piece, zeros_end_);
      swap_pieces(zeros_end_++, used_);
    } else {
      swap_pieces(piece, used_);
    }
    ++used_;
  }
}

void TlsExchange::exchange_small(std::byte* out, const std::byte* in) const noexcept {
  for (const SmallRange& range : small_) {
    std::memcpy(out + range.at, range.live, range.bytes);
    std::memcpy(range.live, in + range.at, range.bytes);
  }
}

// Call it after all pieces that differ have been taken into use.
[[gnu::always_inline]] inline void TlsExchange::exchange_used(std::byte* out, const std::byte* in) const noexcept {
  std::size_t held;
  std::memcpy(&held, in, sizeof held);
  std::memcpy(out, &used_, sizeof used_);
  in += sizeof held;
  out += sizeof held;
  if (!small_.empty()) [[unlikely]] {
    exchange_small(out, in);
    in += initial_small_.size();
    out += initial_small_.size();
  }
  std::byte* const* const live = live_.data();
  const std::size_t used = used_;
  for (std::size_t k = 0; k < used; ++k) __builtin_memcpy(out + k * kPieceBytes, live[k], kPieceBytes);
  for (std::size_t k = 0; k < held; ++k) __builtin_memcpy(live[k], in + k * kPieceBytes, kPieceBytes);
  for (std::size_t k = held; k < used; ++k) __builtin_memcpy(live[k], &initial_[k], kPieceBytes);
}

void TlsExchange::exchange_portable(TlsExchange& self, std::byte* out, const std::byte* in) noexcept {
  bool any = false;
  for (std::size_t piece = self.used_; piece < self.live_.size(); ++piece) any |= self.differs(piece);
  if (any) self.take_into_use();
  self.exchange_used(out, in);
}

[[gnu::target("avx2"), gnu::always_inline]] inline __m256i load_piece(const void* piece) noexcept {
  return _mm256_loadu_si256(static_cast<const __m256i*>(piece));
}

[[gnu::target("avx2")]] void TlsExchange::exchange_avx2(TlsExchange& self, std::byte* out,
                                                        const std::byte* in) noexcept {
  std::byte* const* const live = self.live_.data();
  const std::size_t zeros_end = self.zeros_end_;
  const std::size_t end = self.live_.size();
  __m256i any = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (std::size_t k = self.used_; k < zeros_end; ++k) any = _mm256_or_si256(any, load_piece(live[k]));
  for (std::size_t k = zeros_end; k < end; ++k) {
    any = _mm256_or_si256(any, _mm256_xor_si256(load_piece(live[k]), load_piece(&self.initial_[k])));
  }
  if (!_mm256_testz_si256(any, any)) [[unlikely]]
    self.take_into_use();
  self.exchange_used(out, in);
}

}  // namespace rehearse::torch_state
