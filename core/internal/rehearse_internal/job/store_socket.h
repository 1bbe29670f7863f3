// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rehearse {

// A listening socket for c10d::TCPStoreOptions::masterListenFd; c10d's store closes it. Without such a socket, the
// store listens on all network interfaces of the host and obeys anyone who reaches it.
struct StoreSocket {
  int file = -1;
  std::uint16_t port = 0;
};

// Listens only at the address of `host`; port 0: any free one. Returns nullopt if other hosts cannot reach this host at
// that address: the address belongs to another host (a forwarded port), or `host` resolves to the loopback although its
// name does not say so. Throws std::system_error if the port is taken or `host` is unknown.
std::optional<StoreSocket> listen_at(const std::string& host, std::uint16_t port);

// "localhost", "::1", "127.0.0.1" and all other 127.*
bool is_loopback(std::string_view host);

}  // namespace rehearse
