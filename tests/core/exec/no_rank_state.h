// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include <rehearse_internal/exec/rank_state.h>

namespace rehearse::exec {

// For tests whose ranks keep no state in thread-local or global variables.
class NoRankState final : public RankState {
 public:
  std::size_t image_bytes() const noexcept override { return 0; }
  void create_image(std::byte*, int, std::uint32_t) override {}
  void exchange(std::byte*, const std::byte*) noexcept override {}
  void end_fiber(int, std::uint32_t) noexcept override {}
};

}  // namespace rehearse::exec
