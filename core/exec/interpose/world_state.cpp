// SPDX-License-Identifier: BSD-3-Clause
#include "world_state.h"

#include <unistd.h>

#include <array>
#include <atomic>

namespace rehearse::exec::interpose {
namespace {

constexpr std::uint32_t kWorldNumbers = 2048;  // fills 32 bits together with the fiber's 20 bits and the sign

std::array<std::atomic<bool>, kWorldNumbers> g_alive{};
std::atomic<std::uint32_t> g_last{0};

// Cycles through the numbers, so that each number is reused as late as possible. Otherwise a lock that an ended world
// left locked could seem to belong to the new world.
std::uint32_t take_number() noexcept {
  for (;;) {
    const auto number = g_last.fetch_add(1) % kWorldNumbers;
    if (!g_alive[number].exchange(true)) return number;
  }
}

}  // namespace

OwnerTags::OwnerTags()
    : base_(static_cast<std::int32_t>(0x8000'0000u | (take_number() << kFiberBits))), thread_id_(::gettid()) {}

OwnerTags::~OwnerTags() { g_alive[(static_cast<std::uint32_t>(base_) >> kFiberBits) % kWorldNumbers].store(false); }

OwnerTags::Holder OwnerTags::classify(std::int32_t owner) const noexcept {
  if (owner == 0) return Holder::nobody;
  if (owner == thread_id_) return Holder::this_thread;
  if (owner > 0) return Holder::other_thread;
  const auto world = static_cast<std::uint32_t>(owner) & ~kFiberMask;
  if (world == static_cast<std::uint32_t>(base_)) return Holder::this_world;
  return g_alive[(world >> kFiberBits) % kWorldNumbers].load() ? Holder::other_thread : Holder::ended_world;
}

WorldState::~WorldState() {
  // The fibers that still run an initialisation never return. Their pending initialisations would block the next world
  // that reaches them.
  for (const auto& [guard, fiber] : guards.running()) give_up_guard(guard);
  for (const auto& [once, fiber] : onces.running()) give_up_once(once);
}

}  // namespace rehearse::exec::interpose
