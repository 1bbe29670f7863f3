// SPDX-License-Identifier: BSD-3-Clause
#include "python/preload/random_bytes.h"

#include <cstddef>
#include <map>
#include <random>

#include <sys/types.h>

#include "exec/fiber/fiber.h"
#include "exec/interpose/real.h"

namespace rehearse::python {

ssize_t random_bytes(void* bytes, size_t size, unsigned flags) REHEARSE_INTERPOSES("getrandom");

namespace {

constinit exec::interpose::Real<ssize_t (*)(void*, size_t, unsigned)> real_random_bytes("getrandom");

std::map<int, std::mt19937_64>& generators() {
  static std::map<int, std::mt19937_64> by_rank;
  return by_rank;
}

}  // namespace

void seed_random_bytes(int rank, std::uint64_t seed) {
  std::seed_seq words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                      static_cast<std::uint32_t>(rank)};
  generators().insert_or_assign(rank, std::mt19937_64(words));
}

ssize_t random_bytes(void* bytes, size_t size, unsigned flags) {
  const auto* const fiber = exec::fiber_of_thread();
  const auto own = fiber != nullptr ? generators().find(fiber->rank) : generators().end();
  if (own == generators().end()) return real_random_bytes(bytes, size, flags);
  auto* const to = static_cast<unsigned char*>(bytes);
  for (size_t i = 0; i < size; ++i) to[i] = static_cast<unsigned char>(own->second() >> 32);
  return static_cast<ssize_t>(size);
}

}  // namespace rehearse::python
