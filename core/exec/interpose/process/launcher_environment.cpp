// SPDX-License-Identifier: BSD-3-Clause
// RANK, LOCAL_RANK, WORLD_SIZE and LOCAL_WORLD_SIZE, which torchrun sets for each process, for programs that expect
// them.
#include <array>
#include <cstring>

#include "exec/interpose/real.h"
#include "exec/interpose/world_state.h"

namespace rehearse::exec::interpose {

char* environment_getenv(const char* name) REHEARSE_INTERPOSES("getenv");
char* environment_secure_getenv(const char* name) REHEARSE_INTERPOSES("secure_getenv");

namespace {

constinit Real<char* (*)(const char*)> real_getenv("getenv");
constinit Real<char* (*)(const char*)> real_secure_getenv("secure_getenv");

bool is_one_of(const char* name, const char* one, const char* other) {
  return std::strcmp(name, one) == 0 || std::strcmp(name, other) == 0;
}

// All ranks are on one machine, so local ranks equal ranks.
char* given_by_launcher(const Fiber& fiber, const char* name) {
  const bool asks_rank = is_one_of(name, "RANK", "LOCAL_RANK");
  if (!asks_rank && !is_one_of(name, "WORLD_SIZE", "LOCAL_WORLD_SIZE")) return nullptr;
  return world_of(fiber).processes.with(fiber.rank, fiber.world->options.ranks, [&](ProcessState& state) {
    return asks_rank ? state.rank_text.data() : state.ranks_text.data();
  });
}

char* look_up(const char* name, char* value) {
  const Fiber* const fiber = fiber_of_thread();
  return value == nullptr && fiber != nullptr ? given_by_launcher(*fiber, name) : value;
}

}  // namespace

char* environment_getenv(const char* name) { return look_up(name, real_getenv(name)); }

char* environment_secure_getenv(const char* name) { return look_up(name, real_secure_getenv(name)); }

std::span<const Interposed> environment_functions() {
  static const std::array functions = {
      Interposed{"getenv", reinterpret_cast<const void*>(environment_getenv)},
      Interposed{"secure_getenv", reinterpret_cast<const void*>(environment_secure_getenv)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose
