// SPDX-License-Identifier: BSD-3-Clause
#include "stack_pool.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

#include "asan.h"

// Defined if the program is linked with AddressSanitizer.
extern "C" [[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* address, std::size_t bytes);

namespace rehearse::exec {
namespace {

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t round_up(std::size_t bytes, std::size_t unit) noexcept { return (bytes + unit - 1) / unit * unit; }

// Wide enough that a function with a large frame cannot step over the guard pages. The number of pages is odd, so that
// stacks are an odd number of pages apart and their addresses use all sets of the core's TLB. Multiples of 64 KiB would
// share a few sets.
constexpr std::size_t kGuardBytes = std::size_t{68} << 10;
constexpr int kMapFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
constexpr std::size_t kStackBytesMin = std::size_t{64} << 10;

// Stacks begin at pages, so their tops would all map to the same few cache sets, and a thousand fibers would evict each
// other at every switch. Therefore stacks begin at different places in their first page, but never so low that a new
// fiber's first data (its context and its first frames) needs a second page.
constexpr std::size_t kStaggerStep = 17 * 64;
constexpr std::size_t kStaggerSpan = 39 * 64;

// Names the system limit that was reached, and the command that raises it.
std::string what_limits(std::size_t bytes_each) {
  std::size_t maps_most = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> maps_most;
  std::ifstream maps("/proc/self/maps");
  const auto maps_now = static_cast<std::size_t>(
      std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n'));
  constexpr std::size_t kMapsOfAStack = 2;  // the kernel counts a stack and its guard page separately
  if (maps_most != 0 && maps_now + kMapsOfAStack * 2 > maps_most) {
    constexpr std::size_t kRanksMost = 65'536;
    constexpr std::size_t kOtherMaps = 4'096;  // an estimate for the program and its libraries
    return fmt::format(
        "each takes {} memory maps, and vm.max_map_count is {}, enough for some {} ranks; sysctl -w "
        "vm.max_map_count={} is enough for {}",
        kMapsOfAStack, maps_most, maps_most / kMapsOfAStack, kRanksMost * kMapsOfAStack + kOtherMaps, kRanksMost);
  }
  rlimit space{};
  if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    return fmt::format(
        "ulimit -v is {} KiB, enough for {} such stacks at most; ulimit -v unlimited, fewer ranks or "
        "smaller stacks help",
        space.rlim_cur >> 10, space.rlim_cur / bytes_each);
  }
  return "the system has no more address space to give; fewer ranks, or smaller stacks, take less";
}

}  // namespace

StackPool::StackPool(std::size_t stack_bytes)
    : stack_bytes_(round_up(stack_bytes < kStackBytesMin ? kStackBytesMin : stack_bytes, page_bytes())) {}

StackPool::~StackPool() { trim(0); }

boost::context::stack_context StackPool::take() {
  if (!free_.empty()) {
    const auto stack = free_.back();
    free_.pop_back();
    return stack;
  }
  const std::size_t mapped = stack_bytes_ + kGuardBytes;
  void* const base = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, kMapFlags, -1, 0);
  if (base == MAP_FAILED || ::mprotect(base, kGuardBytes, PROT_NONE) != 0) {
    const int error = errno;
    if (base != MAP_FAILED) ::munmap(base, mapped);
    throw std::system_error(
        error, std::generic_category(),
        fmt::format("cannot map another fiber stack of {} KiB ({})", stack_bytes_ >> 10, what_limits(mapped)));
  }
  // With huge pages, every rank's first touch would cost 2 MiB.
  ::madvise(static_cast<char*>(base) + kGuardBytes, stack_bytes_, MADV_NOHUGEPAGE);
  const std::size_t stagger = stacks_made_++ * kStaggerStep % kStaggerSpan;
  boost::context::stack_context stack;
  stack.size = stack_bytes_ - stagger;
  stack.sp = static_cast<char*>(base) + mapped - stagger;
  return stack;
}

void StackPool::give_back(const boost::context::stack_context& stack) noexcept { free_.push_back(stack); }

void StackPool::trim(std::size_t keep) noexcept {
  while (free_.size() > keep) {
    unmap(free_.back());
    free_.pop_back();
  }
}

void StackPool::unmap(const boost::context::stack_context& stack) noexcept {
  const std::size_t mapped = stack_bytes_ + kGuardBytes;
  void* const base = static_cast<char*>(stack.sp) - stack.size - kGuardBytes;
  // The frames of a fiber's last switch never return, and their poison must not affect later contents of this memory.
  if (__asan_unpoison_memory_region != nullptr) __asan_unpoison_memory_region(base, mapped);
  ::munmap(base, mapped);
}

// The new map has the properties of guard pages, so the kernel makes it one map with those of the stacks around it. If
// that fails, the stack only keeps its memory.
void StackPool::seal(const boost::context::stack_context& stack) noexcept {
  void* const base = static_cast<char*>(stack.sp) - stack.size - kGuardBytes;
  static_cast<void>(
      ::mmap(base, round_up(stack.size + kGuardBytes, page_bytes()), PROT_NONE, kMapFlags | MAP_FIXED, -1, 0));
}

LostStacks::~LostStacks() {
  if (looks_for_leaks()) return;  // LeakSanitizer goes on to search these stacks; see AsanStack::keep()
  for (const auto& stack : stacks) StackPool::seal(stack);
}

bool StackPool::in_guard_page(const boost::context::stack_context& stack, const void* address) noexcept {
  const auto lowest = reinterpret_cast<std::uintptr_t>(stack.sp) - stack.size;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at < lowest && at >= lowest - kGuardBytes;
}

}  // namespace rehearse::exec
