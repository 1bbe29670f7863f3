// SPDX-License-Identifier: BSD-3-Clause
#include "readable_bytes.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include <sys/uio.h>
#include <unistd.h>

namespace rehearse::sim {
namespace {

constexpr std::size_t kPagesAtOnce = 256;

std::size_t bytes_of_page() noexcept {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

const std::byte* next_page(const std::byte* address) noexcept {
  return address + (bytes_of_page() - reinterpret_cast<std::uintptr_t>(address) % bytes_of_page());
}

}  // namespace

// Lets the kernel copy one byte of each page and say how many it copied: then an unmapped page is an error, not a
// signal.
std::size_t readable_bytes(const ByteSpan& bytes) noexcept {
  std::byte copies[kPagesAtOnce];
  iovec pages[kPagesAtOnce];
  for (const auto* address = bytes.begin; address < bytes.end;) {
    std::size_t count = 0;
    for (const auto* page = address; page < bytes.end && count < kPagesAtOnce; page = next_page(page)) {
      pages[count++] = {const_cast<std::byte*>(page), 1};
    }
    const iovec to{copies, count};
    const auto copied = ::process_vm_readv(::getpid(), &to, 1, pages, count, 0);
    if (copied < 0 && errno != EFAULT) return bytes.size();  // this kernel or sandbox does not offer the call
    const auto readable = static_cast<std::size_t>(std::max<ssize_t>(copied, 0));
    if (readable < count) return ByteSpan{bytes.begin, static_cast<const std::byte*>(pages[readable].iov_base)}.size();
    address = next_page(static_cast<const std::byte*>(pages[count - 1].iov_base));
  }
  return bytes.size();
}

}  // namespace rehearse::sim
