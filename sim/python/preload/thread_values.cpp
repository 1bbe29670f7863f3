// SPDX-License-Identifier: BSD-3-Clause
#include "python/preload/thread_values.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <string_view>

#include <dlfcn.h>
#include <pthread.h>

#include <rehearse_internal/exec/fiber_local.h>

#include "exec/fiber/fiber.h"
#include "exec/interpose/real.h"

namespace rehearse::python {

int key_create(pthread_key_t* key, void (*destroy)(void*)) REHEARSE_INTERPOSES("pthread_key_create");
void* get_specific(pthread_key_t key) REHEARSE_INTERPOSES("pthread_getspecific");
int set_specific(pthread_key_t key, const void* value) REHEARSE_INTERPOSES("pthread_setspecific");

namespace {

using exec::interpose::Real;

constinit Real<int (*)(pthread_key_t*, void (*)(void*))> real_key_create("pthread_key_create");
constinit Real<void* (*)(pthread_key_t)> real_get_specific("pthread_getspecific");
constinit Real<int (*)(pthread_key_t, const void*)> real_set_specific("pthread_setspecific");

constexpr std::size_t kKeysMost = 1024;  // PTHREAD_KEYS_MAX of glibc
constexpr int kFiberKeysMost = 64;

// By key: the index, from 1, of a fiber's value; 0: the key is not an interpreter's.
std::array<std::atomic<int>, kKeysMost> g_indices{};
std::atomic<int> g_fiber_keys{0};

struct Values {
  std::array<void*, kFiberKeysMost> of{};
};
const exec::FiberLocal<Values>& values() {
  static const exec::FiberLocal<Values> all;
  return all;
}

// The libpython of a shared interpreter, or the executable of a static one.
bool is_of_interpreter(const void* caller) noexcept {
  Dl_info info{};
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
  const std::string_view path(info.dli_fname);
  const auto name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libpython3") || name.starts_with("python");
}

// The index of the running fiber's value; -1: the thread's own counts.
int index_of(pthread_key_t key) noexcept {
  if (exec::fiber_of_thread() == nullptr || key >= kKeysMost) return -1;
  return g_indices[key].load(std::memory_order_relaxed) - 1;
}

}  // namespace

int key_create(pthread_key_t* key, void (*destroy)(void*)) {
  const void* const caller = __builtin_return_address(0);
  const int error = real_key_create(key, destroy);
  if (error != 0 || *key >= kKeysMost) return error;
  int index = 0;
  if (is_of_interpreter(caller) && g_fiber_keys < kFiberKeysMost) index = ++g_fiber_keys;
  g_indices[*key] = index;
  return 0;
}

void* get_specific(pthread_key_t key) {
  const int index = index_of(key);
  if (index < 0) return real_get_specific(key);
  const auto* const own = values().find();
  return own != nullptr ? own->of[static_cast<std::size_t>(index)] : nullptr;
}

int set_specific(pthread_key_t key, const void* value) {
  const int index = index_of(key);
  if (index < 0) return real_set_specific(key, value);
  values().get().of[static_cast<std::size_t>(index)] = const_cast<void*>(value);
  return 0;
}

void keep_thread_values() noexcept {
  for (pthread_key_t key = 0; key < kKeysMost; ++key) {
    if (index_of(key) >= 0) real_set_specific(key, get_specific(key));
  }
}

int fiber_keys() noexcept { return g_fiber_keys; }

}  // namespace rehearse::python
