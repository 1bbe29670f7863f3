// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/job/store_socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rehearse {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* addresses) const noexcept { ::freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses addresses_of(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error == 0) return Addresses(found);
  throw std::system_error(std::make_error_code(std::errc::address_not_available),
                          fmt::format("{}: {}", host, ::gai_strerror(error)));
}

// IPv4 first, because c10d's clients always try IPv4.
std::vector<const addrinfo*> in_order(const Addresses& addresses) {
  std::vector<const addrinfo*> all;
  for (const auto* each = addresses.get(); each != nullptr; each = each->ai_next) all.push_back(each);
  std::stable_partition(all.begin(), all.end(), [](const auto* each) { return each->ai_family == AF_INET; });
  return all;
}

bool leads_to_loopback(const addrinfo& address) {
  if (address.ai_family == AF_INET) {
    const auto* const ip = reinterpret_cast<const sockaddr_in*>(address.ai_addr);
    return ntohl(ip->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  const auto* const ip = reinterpret_cast<const sockaddr_in6*>(address.ai_addr);
  return IN6_IS_ADDR_LOOPBACK(&ip->sin6_addr) != 0;
}

std::uint16_t port_of(int file) {
  sockaddr_storage own{};
  socklen_t bytes = sizeof own;
  if (::getsockname(file, reinterpret_cast<sockaddr*>(&own), &bytes) != 0)
    throw std::system_error(errno, std::generic_category(), "the port of a store");
  return ntohs(own.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(own).sin_port
                                        : reinterpret_cast<const sockaddr_in6&>(own).sin6_port);
}

// Returns -1 if the address does not belong to this host.
int bound_to(const addrinfo& address) {
  const int file = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  // The port of a job that has just ended may still be in TIME_WAIT, so allow its reuse.
  constexpr int kOn = 1;
  if (file >= 0 && ::setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &kOn, sizeof kOn) == 0 &&
      ::bind(file, address.ai_addr, address.ai_addrlen) == 0 && ::listen(file, SOMAXCONN) == 0)
    return file;
  const int error = errno;
  if (file >= 0) ::close(file);
  if (error == EADDRNOTAVAIL || error == EAFNOSUPPORT) return -1;
  throw std::system_error(error, std::generic_category(), "a socket for the job's store");
}

}  // namespace

bool is_loopback(std::string_view host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

std::optional<StoreSocket> listen_at(const std::string& host, std::uint16_t port) {
  const auto addresses = addresses_of(host, port);
  for (const auto* const address : in_order(addresses)) {
    if (leads_to_loopback(*address) && !is_loopback(host)) return std::nullopt;
    if (const int file = bound_to(*address); file >= 0) return StoreSocket{file, port_of(file)};
  }
  return std::nullopt;
}

}  // namespace rehearse
