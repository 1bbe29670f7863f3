// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cerrno>
#include <memory>
#include <new>
#include <system_error>

#include <sys/mman.h>

namespace rehearse::cli {

template <class T>
struct Unmap {
  void operator()(T* object) const noexcept { munmap(object, sizeof *object); }
};

// An object that this process shares with the processes that it forks.
template <class T>
using Shared = std::unique_ptr<T, Unmap<T>>;

// Throws std::system_error.
template <class T>
Shared<T> make_shared_with_forks() {
  void* const memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "memory to share with a process");
  return Shared<T>(new (memory) T);
}

}  // namespace rehearse::cli
