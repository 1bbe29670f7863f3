// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/caller/call_stack.h"

#include <algorithm>
#include <array>
#include <span>

namespace rehearse::capture {
namespace {

constexpr std::size_t kFrames = 40;

}  // namespace

exec::CallSite call_stack() {
  std::array<void*, kFrames> addresses;
  const std::size_t count = exec::CallSite::capture_to(addresses, 1);
  return exec::CallSite::from_addresses(std::span(addresses).first(count));
}

[[gnu::noinline]] void* outer_address() {
  std::array<void*, 1> address{};
  exec::CallSite::capture_to(address, 2);
  return address.front();
}

[[gnu::noinline]] std::vector<void*> addresses_within(const void* outer) {
  std::array<void*, kFrames> addresses;
  const std::size_t count = exec::CallSite::capture_to(addresses, 1);
  const auto end = std::find(addresses.begin(), addresses.begin() + count, outer);
  return std::vector<void*>(addresses.begin(), end);
}

bool is_called_by_libtorch(const void* outer, std::initializer_list<std::string_view> prefixes) {
  const std::vector<void*> addresses = addresses_within(outer);
  return std::any_of(addresses.begin(), addresses.end(), [prefixes](void* address) {
    const std::string_view function = libtorch_function_at(address);
    return std::any_of(prefixes.begin(), prefixes.end(), [&](auto prefix) { return function.starts_with(prefix); });
  });
}

}  // namespace rehearse::capture
