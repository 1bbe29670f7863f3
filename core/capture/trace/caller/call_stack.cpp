// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/caller/call_stack.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "capture/trace/caller/libtorch_functions.h"

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

bool is_called_by(const exec::CallSite& site, std::string_view name) {
  const auto frames = site.frames();
  return std::any_of(frames.begin(), frames.end(),
                     [&](const exec::Frame& frame) { return frame.function.find(name) != std::string::npos; });
}

bool is_called_by_exported(std::string_view prefix) {
  std::array<void*, kFrames> addresses;
  const std::size_t count = exec::CallSite::capture_to(addresses);
  return std::any_of(addresses.begin(), addresses.begin() + count,
                     [prefix](void* address) { return libtorch_function_at(address).starts_with(prefix); });
}

bool is_called_by_gradients() {
  return is_called_by_exported("_ZN5torch8autograd4gradE") || is_called_by_exported("_ZN5torch8autograd8backwardE");
}

}  // namespace rehearse::capture
