// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rehearse::sim {

// Numbers as bytes, small ones as one: seven bits in each, the lowest first, the eighth says that more follow.
class ByteText {
 public:
  void add(std::uint64_t number);
  void add_signed(std::int64_t number);  // 0, -1, 1, -2 become 0, 1, 2, 3
  // 0 for never; else one more than what add_signed() writes of the distance from `base`.
  void add_time(std::int64_t time, std::int64_t base);

  std::string base64() const;

 private:
  std::string bytes_;
};

}  // namespace rehearse::sim
