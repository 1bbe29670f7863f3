// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse {

// FNV-1a of 64 bits, http://www.isthe.com/chongo/tech/comp/fnv/. Gives the same value on every machine and in every
// version, so files may contain it. Works byte by byte, so it is slow.
class Fnv1a {
 public:
  constexpr void add_byte(unsigned char byte) noexcept { value_ = (value_ ^ byte) * 0x100000001b3ull; }
  // Adds the number's bytes, lowest first.
  constexpr void add_number(std::uint64_t number) noexcept {
    for (int shift = 0; shift < 64; shift += 8) add_byte(static_cast<unsigned char>(number >> shift));
  }
  constexpr void add(std::string_view bytes) noexcept {
    for (const char byte : bytes) add_byte(static_cast<unsigned char>(byte));
  }
  constexpr std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ull;
};

constexpr std::uint64_t fnv1a(std::string_view bytes) noexcept {
  Fnv1a hash;
  hash.add(bytes);
  return hash.value();
}

}  // namespace rehearse
