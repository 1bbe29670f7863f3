// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/comm/fabric.h>

#include <array>

namespace rehearse::comm {

std::span<const c10::DeviceType> Fabric::device_types() const noexcept {
  static constexpr std::array kHost{c10::DeviceType::CPU};
  return kHost;
}

}  // namespace rehearse::comm
