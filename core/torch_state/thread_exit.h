// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "torch_state/interposed.h"

namespace rehearse::torch_state {

// The destructors of one fiber's thread-local variables, in the order of registration.
//
// While a list is current on a thread, a destructor that C++ registers for an object inside `owned` memory
// goes to the list instead of to the thread (see __cxa_thread_atexit in the .cpp). Not thread safe.
class ThreadExitList {
 public:
  // `owned`: the memory of this thread's per-fiber variables. Not copied; must outlive the list.
  explicit ThreadExitList(const std::vector<std::span<std::byte>>& owned) : owned_(&owned) {}

  bool owns(const void* object) const noexcept;
  void add(void (*destroy)(void*), void* object) { entries_.push_back({destroy, object}); }

  // Runs and removes the destructors, last registered first, including those registered meanwhile.
  void run() noexcept;

  std::size_t size() const noexcept { return entries_.size(); }
  void clear() noexcept { entries_.clear(); }

 private:
  struct Entry {
    void (*destroy)(void*);
    void* object;
  };
  const std::vector<std::span<std::byte>>* owned_;
  std::vector<Entry> entries_;
};

// The list of the fiber that runs on this thread; null outside of fibers.
extern constinit thread_local ThreadExitList* current_exit_list;

Interposed interposed_thread_exit();

}  // namespace rehearse::torch_state
