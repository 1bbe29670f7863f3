// SPDX-License-Identifier: BSD-3-Clause
#include "report/page/byte_text.h"

#include "report/page/timeline.h"

namespace rehearse::sim {
namespace {

std::uint64_t zigzag(std::int64_t number) {
  return (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63);
}

}  // namespace

void ByteText::add(std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes_.push_back(static_cast<char>(number | 0x80));
  bytes_.push_back(static_cast<char>(number));
}

void ByteText::add_signed(std::int64_t number) { add(zigzag(number)); }

void ByteText::add_time(std::int64_t time, std::int64_t base) {
  add(time == Timeline::kNever ? 0 : zigzag(time - base) + 1);
}

std::string ByteText::base64() const {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto byte = [&](std::size_t at) {
    return at < bytes_.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes_[at])) : 0u;
  };
  std::string text;
  text.reserve((bytes_.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes_.size(); at += 3) {
    const std::uint32_t bits = byte(at) << 16 | byte(at + 1) << 8 | byte(at + 2);
    for (std::size_t digit = 0; digit < 4; ++digit) {
      const bool is_there = at + digit <= bytes_.size();
      text.push_back(is_there ? kDigits[bits >> (18 - 6 * digit) & 63] : '=');
    }
  }
  return text;
}

}  // namespace rehearse::sim
