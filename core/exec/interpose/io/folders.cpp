// SPDX-License-Identifier: BSD-3-Clause
// The calls that list a folder. The kernel's order depends on the file system and on what was in the folder before, so
// ranks get the entries in an order of their own: by name or, in worlds with ExecutorOptions::patience, in one that the
// oracle chooses for each rank. A rank sees a folder that nobody changes always in the same order.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <dirent.h>

#include <rehearse/hash/word_hash.h>

#include "exec/executor/switcher.h"
#include "exec/interpose/real.h"
#include "exec/interpose/sync/preempt.h"
#include "exec/interpose/world_state.h"

namespace rehearse::exec::interpose {

dirent64* folder_readdir64(DIR* folder) REHEARSE_INTERPOSES("readdir64");
dirent* folder_readdir(DIR* folder) REHEARSE_INTERPOSES("readdir");
void folder_rewinddir(DIR* folder) REHEARSE_INTERPOSES("rewinddir");
long folder_telldir(DIR* folder) REHEARSE_INTERPOSES("telldir");
void folder_seekdir(DIR* folder, long position) REHEARSE_INTERPOSES("seekdir");
int folder_closedir(DIR* folder) REHEARSE_INTERPOSES("closedir");

namespace {

static_assert(sizeof(dirent) == sizeof(dirent64) && offsetof(dirent, d_name) == offsetof(dirent64, d_name));

constinit Real<dirent64* (*)(DIR*)> real_readdir64("readdir64");
constinit Real<void (*)(DIR*)> real_rewinddir("rewinddir");
constinit Real<long (*)(DIR*)> real_telldir("telldir");
constinit Real<void (*)(DIR*, long)> real_seekdir("seekdir");
constinit Real<int (*)(DIR*)> real_closedir("closedir");

// What is left of a folder when a rank first reads from it.
struct Listing {
  std::vector<dirent64> entries;
  std::size_t next = 0;
  int error = 0;  // errno at the end
};

constexpr std::uint32_t kOrders = 16;  // 0: by name; 1: the reverse; others: by a hash of the number and the name

std::uint32_t order_of_rank(const Fiber& fiber, void* return_address) {
  if (!is_patient(*fiber.world) || !is_for_the_user(return_address)) return 0;
  auto& orders = world_of(fiber).listing_orders;
  if (const auto row = orders.find(fiber.rank); row != orders.end()) return row->second;
  const auto order = fiber.world->switcher.choose_number(ChoiceKind::listing, kOrders);
  return orders.emplace(fiber.rank, order).first->second;
}

std::uint64_t key_of(std::uint32_t order, std::string_view name) {
  if (order < 2) return 0;
  WordHash hash(order);
  hash.add(name);
  return hash.value();
}

void sort(std::vector<dirent64>& entries, std::uint32_t order) {
  std::ranges::sort(entries, [order](const dirent64& a, const dirent64& b) {
    const std::string_view name_a(a.d_name), name_b(b.d_name);
    const auto key_a = key_of(order, name_a), key_b = key_of(order, name_b);
    if (key_a != key_b) return key_a < key_b;
    return order == 1 ? name_b < name_a : name_a < name_b;
  });
}

Listing read_all(DIR* folder, std::uint32_t order) {
  Listing listing;
  errno = 0;
  while (const dirent64* const entry = real_readdir64(folder)) {
    dirent64 copy{};
    std::copy_n(reinterpret_cast<const std::byte*>(entry), std::min<std::size_t>(entry->d_reclen, sizeof copy),
                reinterpret_cast<std::byte*>(&copy));
    listing.entries.push_back(copy);
  }
  listing.error = errno;
  sort(listing.entries, order);
  return listing;
}

// Of all worlds, which may run on several threads.
class Listings {
 public:
  // Null: the caller is no rank, and no rank has read from the folder.
  Listing* of(DIR* folder, void* return_address) {
    const std::lock_guard lock(mutex_);
    if (const auto row = listings_.find(folder); row != listings_.end()) return &row->second;
    const Fiber* const fiber = current_fiber();
    if (fiber == nullptr) return nullptr;
    const int error = errno;
    auto& listing = listings_[folder] = read_all(folder, order_of_rank(*fiber, return_address));
    errno = error;
    return &listing;
  }
  void forget(DIR* folder) {
    const std::lock_guard lock(mutex_);
    listings_.erase(folder);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<DIR*, Listing> listings_;
};

Listings& listings() {
  static auto* const all = new Listings;  // folders may be closed while the process ends
  return *all;
}

dirent64* next_entry(DIR* folder, void* return_address) {
  Listing* const listing = listings().of(folder, return_address);
  if (listing == nullptr) return real_readdir64(folder);
  if (listing->next < listing->entries.size()) return &listing->entries[listing->next++];
  if (listing->error != 0) errno = listing->error;
  return nullptr;
}

}  // namespace

dirent64* folder_readdir64(DIR* folder) { return next_entry(folder, __builtin_return_address(0)); }

dirent* folder_readdir(DIR* folder) {
  return reinterpret_cast<dirent*>(next_entry(folder, __builtin_return_address(0)));
}

void folder_rewinddir(DIR* folder) {
  listings().forget(folder);
  real_rewinddir(folder);
}

long folder_telldir(DIR* folder) {
  const Listing* const listing = listings().of(folder, __builtin_return_address(0));
  return listing != nullptr ? static_cast<long>(listing->next) : real_telldir(folder);
}

void folder_seekdir(DIR* folder, long position) {
  Listing* const listing = listings().of(folder, __builtin_return_address(0));
  if (listing == nullptr) return real_seekdir(folder, position);
  listing->next = std::min(static_cast<std::size_t>(position), listing->entries.size());
}

int folder_closedir(DIR* folder) {
  listings().forget(folder);
  return real_closedir(folder);
}

std::span<const Interposed> folder_functions() {
#define REHEARSE_FOLDER_ROW(call) \
  Interposed { #call, reinterpret_cast<const void*>(folder_##call) }
  static const std::array functions = {REHEARSE_FOLDER_ROW(readdir64), REHEARSE_FOLDER_ROW(readdir),
                                       REHEARSE_FOLDER_ROW(rewinddir), REHEARSE_FOLDER_ROW(telldir),
                                       REHEARSE_FOLDER_ROW(seekdir),   REHEARSE_FOLDER_ROW(closedir)};
#undef REHEARSE_FOLDER_ROW
  return functions;
}

}  // namespace rehearse::exec::interpose
