// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse {

// A hash that identifies runs and calls. It takes one word at a time, so a run can add to it as it goes. A word costs a
// multiply and a shift, fast enough for every switch of fibers and every call. Every input bit reaches the high half.
class WordHash {
 public:
  // With start 0, leading zero words leave no trace.
  explicit constexpr WordHash(std::uint64_t start) noexcept : value_(start) {}

  constexpr void add(std::uint64_t word) noexcept {
    value_ = (value_ ^ word) * 0x9E3779B97F4A7C15ull;
    value_ ^= value_ >> 32;
  }
  constexpr void add(std::string_view text) noexcept {
    for (const char letter : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(letter)));
    add(std::uint64_t{text.size()});
  }
  constexpr std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_;
};

}  // namespace rehearse
