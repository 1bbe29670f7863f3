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

// The network interfaces of GLOO_SOCKET_IFNAME (names, with commas between); without it the loopback interface where
// `master`, the host that all ranks know, is one; else that of this host's name. Each listens from now on. Throws what
// gloo does where there is no such interface.
GlooDevices gloo_devices(const std::string& master);

// "tcp on eth0", with commas between several: by what and where devices send.
std::string describe(const GlooDevices& devices);

// c10d's own ProcessGroupGloo on these devices: this process is `rank` of `size`, which meet through `store`. Blocks
// until all ranks are connected, `timeout` at most; that is each operation's limit, too (0: a day).
c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            std::chrono::milliseconds timeout, const GlooDevices& devices);

}  // namespace rehearse::real
