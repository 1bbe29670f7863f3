// SPDX-License-Identifier: BSD-3-Clause
#include "gloo_backend.h"

#include <cstdlib>
#include <string_view>

#include <gloo/transport/device.h>
#include <rehearse_internal/job/store_socket.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace rehearse::real {
namespace {

constexpr std::chrono::hours kNoLimit{24};  // gloo has none

void add_devices(const std::string& master, c10d::ProcessGroupGloo::Options& options) {
  const char* const names = std::getenv("GLOO_SOCKET_IFNAME");
  std::string_view left = names != nullptr ? names : "";
  while (!left.empty()) {
    const auto end = left.find(',');
    const auto name = left.substr(0, end);
    if (!name.empty()) options.devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(std::string(name)));
    left = end == left.npos ? std::string_view() : left.substr(end + 1);
  }
  if (!options.devices.empty()) return;
  options.devices.push_back(is_loopback(master) ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                                : c10d::ProcessGroupGloo::createDefaultDevice());
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            std::chrono::milliseconds timeout, const std::string& master) {
  const auto limit = timeout.count() > 0 ? timeout : std::chrono::milliseconds(kNoLimit);
  const auto options = c10d::ProcessGroupGloo::Options::create(limit);
  add_devices(master, *options);
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, options);
}

}  // namespace rehearse::real
