// SPDX-License-Identifier: BSD-3-Clause
#include "gloo_backend.h"

#include <cstdlib>
#include <string_view>

#include <gloo/transport/device.h>
#include <rehearse_internal/job/store_socket.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace rehearse::real {
namespace {

constexpr std::chrono::hours kNoLimit{24};  // gloo has no unlimited timeout

// Shortens gloo's description of a device, "tcp, pci=..., iface=eth0, speed=...", to "tcp on eth0".
std::string brief(std::string_view device) {
  constexpr std::string_view kInterface = "iface=";
  std::string text(device.substr(0, device.find(',')));
  const auto at = device.find(kInterface);
  if (at == device.npos) return text;
  const auto name = device.substr(at + kInterface.size());
  return text.append(" on ").append(name.substr(0, name.find(',')));
}

}  // namespace

GlooDevices gloo_devices(const std::string& master) {
  GlooDevices devices;
  const char* const names = std::getenv("GLOO_SOCKET_IFNAME");
  std::string_view left = names != nullptr ? names : "";
  while (!left.empty()) {
    const auto end = left.find(',');
    const auto name = left.substr(0, end);
    if (!name.empty()) devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(std::string(name)));
    left = end == left.npos ? std::string_view() : left.substr(end + 1);
  }
  if (!devices.empty()) return devices;
  devices.push_back(is_loopback(master) ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                        : c10d::ProcessGroupGloo::createDefaultDevice());
  return devices;
}

std::string describe(const GlooDevices& devices) {
  std::string text;
  for (const auto& device : devices) {
    if (!text.empty()) text += ", ";
    text += brief(device->str());
  }
  return text;
}

c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            std::chrono::milliseconds timeout, const GlooDevices& devices) {
  const auto limit = timeout.count() > 0 ? timeout : std::chrono::milliseconds(kNoLimit);
  const auto options = c10d::ProcessGroupGloo::Options::create(limit);
  options->devices = devices;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, options);
}

}  // namespace rehearse::real
