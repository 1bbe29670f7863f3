// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rehearse {

// A socket for c10d::TCPStoreOptions::masterListenFd, which closes it. Without one, c10d's store listens on all network
// interfaces of the host, and does what anybody asks who reaches it.
struct StoreSocket {
  int file = -1;
  std::uint16_t port = 0;
};

// Listens at the address of `host` and nowhere else; port 0: any that is free. Nothing where that address does not say
// where other hosts find this one: it is not this host's (a port that is forwarded), or a name other than "localhost"
// stands for the loopback here. Throws std::system_error: the port is taken, or `host` is not known.
std::optional<StoreSocket> listen_at(const std::string& host, std::uint16_t port);

// "localhost", "127.0.0.1", "::1"
bool is_loopback(std::string_view host);

}  // namespace rehearse
