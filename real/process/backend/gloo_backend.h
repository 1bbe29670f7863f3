// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace gloo::transport {
class Device;
}

namespace rehearse::real {

using GlooDevices = std::vector<std::shared_ptr<gloo::transport::Device>>;

// Makes a device of gloo for each network interface that GLOO_SOCKET_IFNAME names (separated by commas). Without that
// variable, makes one device. If `master`, the address of rank 0's host, is a loopback address, the device uses the
// loopback interface. Otherwise it uses the interface with the address to which this host's name resolves or, if the
// name resolves to no address of this host, the loopback interface. Each device listens from now on. Throws what gloo
// throws if an interface does not exist.
GlooDevices gloo_devices(const std::string& master);

// For example "tcp on eth0": how and where devices send; commas separate several devices.
std::string describe(const GlooDevices& devices);

// Makes c10d's own ProcessGroupGloo on these devices. This process is `rank` of `size`. The ranks find each other
// through `store`. Blocks until this rank is connected to all others, which may still be connecting to each other.
// Throws if that takes longer than `timeout`, which also limits each operation (0: a day).
c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            std::chrono::milliseconds timeout, const GlooDevices& devices);

}  // namespace rehearse::real
