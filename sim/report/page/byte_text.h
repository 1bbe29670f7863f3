// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rehearse::sim {

// Numbers as bytes, seven bits in each byte, the lowest first; the eighth bit says that more bytes follow.
class ByteText {
 public:
  void add(std::uint64_t number);
  void add_signed(std::int64_t number);  // writes 0, -1, 1, -2 as 0, 1, 2, 3
  // Writes 0 for never; otherwise one more than add_signed() writes for the distance from `base`.
  void add_time(std::int64_t time, std::int64_t base);

  std::string base64() const;

 private:
  std::string bytes_;
};

}  // namespace rehearse::sim
