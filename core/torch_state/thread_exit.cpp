// SPDX-License-Identifier: BSD-3-Clause
#include "torch_state/thread_exit.h"

#include <dlfcn.h>

#include <rehearse_internal/exec/thread_exit_keeper.h>

// C++ calls this for each thread-local object with a destructor, from every library, because an executable's definition
// precedes that of libstdc++. NOTE: other code must refer to this source file, or the linker does not take it from the
// archive. The function must have default visibility, or the executable does not export it.
extern "C" [[gnu::visibility("default")]] int __cxa_thread_atexit(void (*destroy)(void*), void* object,
                                                                  void* library) noexcept {
  using Function = int (*)(void (*)(void*), void*, void*);
  auto* list = rehearse::torch_state::current_exit_list;
  if (list != nullptr && list->owns(object)) {
    list->add(destroy, object);
    return 0;
  }
  const auto keep = rehearse::exec::thread_exit_keeper;
  if (keep != nullptr && keep(destroy, object, library)) return 0;
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "__cxa_thread_atexit"));
  return next(destroy, object, library);
}

namespace rehearse::torch_state {

constinit thread_local ThreadExitList* current_exit_list = nullptr;

bool ThreadExitList::owns(const void* object) const noexcept {
  const auto* address = static_cast<const std::byte*>(object);
  for (const auto& range : *owned_) {
    if (address >= range.data() && address < range.data() + range.size()) return true;
  }
  return false;
}

void ThreadExitList::run() noexcept {
  while (!entries_.empty()) {
    const Entry last = entries_.back();
    entries_.pop_back();
    last.destroy(last.object);
  }
}

Interposed interposed_thread_exit() {
  return {"__cxa_thread_atexit",
          "thread-local objects of ranks would outlive them",
          {{"__cxa_thread_atexit", reinterpret_cast<void*>(&__cxa_thread_atexit)}}};
}

}  // namespace rehearse::torch_state
