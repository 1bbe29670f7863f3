// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <sys/syscall.h>
#include <unistd.h>

// write() and read() for signal handlers and for watchers of a run. The usual functions could suspend the calling rank.
namespace rehearse::exec {

inline long write_at_once(int file, const void* data, std::size_t bytes) noexcept {
  return ::syscall(SYS_write, file, data, bytes);
}

inline long read_at_once(int file, void* data, std::size_t bytes) noexcept {
  return ::syscall(SYS_read, file, data, bytes);
}

}  // namespace rehearse::exec
