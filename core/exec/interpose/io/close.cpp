// SPDX-License-Identifier: BSD-3-Clause
// Functions that close file descriptors, some of them as a side effect (dup2()). They skip descriptors that belong to
// the run.
#include <rehearse_internal/exec/kept_files.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include <sys/syscall.h>
#include <unistd.h>

#include "close.h"
#include "exec/interpose/real.h"

namespace rehearse::exec {
namespace {

constexpr unsigned kFilesMost = 65536;
constexpr unsigned kWordBits = 64;

// One bit per descriptor. Plain atomics, because programs close files before constructors run and in signal handlers.
constinit std::array<std::atomic<std::uint64_t>, kFilesMost / kWordBits> g_kept{};
constinit std::atomic<pid_t> g_owner{0};  // the process that keeps the files; 0: none

std::uint64_t bit_of(unsigned file) { return std::uint64_t{1} << (file % kWordBits); }

}  // namespace

void keep_open(int file) noexcept {
  const auto number = static_cast<unsigned>(file);
  if (number >= kFilesMost) return;
  const auto self = ::getpid();
  if (g_owner.exchange(self) != self) {
    for (auto& word : g_kept) word = 0;
  }
  g_kept[number / kWordBits] |= bit_of(number);
}

void stop_keeping(int file) noexcept {
  const auto number = static_cast<unsigned>(file);
  if (number < kFilesMost) g_kept[number / kWordBits] &= ~bit_of(number);
}

bool is_kept_open(int file) noexcept {
  const auto number = static_cast<unsigned>(file);
  if (number >= kFilesMost || (g_kept[number / kWordBits] & bit_of(number)) == 0) return false;
  return g_owner == ::getpid();
}

namespace interpose {

int close_one(int file) REHEARSE_INTERPOSES("close");
int close_some(unsigned first, unsigned last, int flags) REHEARSE_INTERPOSES("close_range");
void close_rest(int first) REHEARSE_INTERPOSES("closefrom");
int close_for_copy(int file, int as) REHEARSE_INTERPOSES("dup2");
int close_for_copy_with_flags(int file, int as, int flags) REHEARSE_INTERPOSES("dup3");

namespace {

constinit Real<int (*)(int)> real_close("close");
constinit Real<int (*)(int, int)> real_dup2("dup2");
constinit Real<int (*)(int, int, int)> real_dup3("dup3");
constinit Real<long (*)(long, long, long, long, long, long, long)> real_syscall_that_closes("syscall");

int fail_close(int error) {
  errno = error;
  return -1;
}

// By system call number, because libc has close_range() only since 2.34.
int close_in_kernel(unsigned first, unsigned last, int flags) {
  return static_cast<int>(real_syscall_that_closes(SYS_close_range, first, last, flags, 0, 0, 0));
}

}  // namespace

int close_one(int file) { return is_kept_open(file) ? fail_close(EBADF) : real_close(file); }

// Closes the ranges between the kept descriptors.
int close_some(unsigned first, unsigned last, int flags) {
  if (g_owner == 0 || first > last) return close_in_kernel(first, last, flags);
  auto from = first;
  for (auto file = first; file <= std::min(last, kFilesMost - 1); ++file) {
    if (!is_kept_open(static_cast<int>(file))) continue;
    if (file > from && close_in_kernel(from, file - 1, flags) != 0) return -1;
    from = file + 1;
  }
  return from > last ? 0 : close_in_kernel(from, last, flags);
}

void close_rest(int first) { close_some(first < 0 ? 0U : static_cast<unsigned>(first), ~0U, 0); }

int close_for_copy(int file, int as) {
  return is_kept_open(as) && file != as ? fail_close(EBUSY) : real_dup2(file, as);
}

int close_for_copy_with_flags(int file, int as, int flags) {
  return is_kept_open(as) && file != as ? fail_close(EBUSY) : real_dup3(file, as, flags);
}

std::optional<long> close_by_number(long number, long a1, long a2, long a3) {
  const auto is_kept = [](long file) { return is_kept_open(static_cast<int>(file)); };
  if (number == SYS_close && is_kept(a1)) return fail_close(EBADF);
  if ((number == SYS_dup2 || number == SYS_dup3) && a1 != a2 && is_kept(a2)) return fail_close(EBUSY);
  if (number != SYS_close_range || g_owner == 0) return std::nullopt;
  return close_some(static_cast<unsigned>(a1), static_cast<unsigned>(a2), static_cast<int>(a3));
}

std::span<const Interposed> close_functions() {
  static const std::array functions = {
      Interposed{"close", reinterpret_cast<const void*>(close_one)},
      Interposed{"close_range", reinterpret_cast<const void*>(close_some)},
      Interposed{"closefrom", reinterpret_cast<const void*>(close_rest)},
      Interposed{"dup2", reinterpret_cast<const void*>(close_for_copy)},
      Interposed{"dup3", reinterpret_cast<const void*>(close_for_copy_with_flags)},
  };
  return functions;
}

}  // namespace interpose
}  // namespace rehearse::exec
