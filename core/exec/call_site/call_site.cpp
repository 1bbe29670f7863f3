// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/exec/call_site.h>

#include <unwind.h>

#include <array>
#include <cstdint>
#include <utility>

#include <rehearse_internal/exec/call_site_scope.h>

#include "exec/call_site/canonical_address.h"
#include "exec/call_site/symbolize.h"

namespace rehearse::exec {
namespace {

struct Walk {
  std::span<void*> out;
  std::size_t skip;
  std::size_t count = 0;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* data) {
  auto& walk = *static_cast<Walk*>(data);
  int interrupted = 0;
  auto address = static_cast<std::uintptr_t>(_Unwind_GetIPInfo(context, &interrupted));
  // The stack of a fiber ends in code that nobody called.
  if (address == 0) return _URC_END_OF_STACK;
  if (walk.skip > 0) {
    --walk.skip;
    return _URC_NO_REASON;
  }
  if (walk.count == walk.out.size()) return _URC_END_OF_STACK;
  // Looked up as what it is elsewhere: the address after a call. Of a signal it is that of the instruction.
  if (interrupted != 0) ++address;
  walk.out[walk.count++] = reinterpret_cast<void*>(canonical_address(address));
  return _URC_NO_REASON;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::vector<Frame> user_frames_up_to(const std::vector<void*>& addresses, std::size_t most) {
  std::vector<Frame> frames;
  for (void* address : addresses) {
    // Names in LibTorch cost milliseconds each, and do not matter here.
    if (in_foreign_library(address)) continue;
    for (const ResolvedFrame& resolved : resolve(address)) {
      if (resolved.users_own) frames.push_back(resolved.frame);
      if (frames.size() == most) return frames;
    }
  }
  return frames;
}

}  // namespace

[[gnu::noinline]] std::size_t CallSite::capture_to(std::span<void*> out, std::size_t skip) noexcept {
  Walk walk{out, skip + 1};
  _Unwind_Backtrace(visit, &walk);
  return walk.count;
}

[[gnu::noinline]] CallSite CallSite::capture() {
  std::array<void*, kFramesMax> addresses;
  const std::size_t asked = CallSiteScope::copy_to(addresses);
  const std::size_t count = asked + capture_to(std::span(addresses).subspan(asked), 1);
  return from_addresses(std::span(addresses).first(count));
}

CallSite CallSite::from_addresses(std::span<void* const> addresses) {
  CallSite site;
  site.addresses_.assign(addresses.begin(), addresses.end());
  return site;
}

std::vector<Frame> CallSite::frames() const {
  std::vector<Frame> frames;
  for (void* address : addresses_) {
    for (const ResolvedFrame& resolved : resolve(address)) frames.push_back(resolved.frame);
  }
  return frames;
}

Frame CallSite::user_frame() const {
  auto frames = user_frames_up_to(addresses_, 1);
  return frames.empty() ? Frame{} : std::move(frames.front());
}

std::vector<Frame> CallSite::user_frames() const { return user_frames_up_to(addresses_, addresses_.max_size()); }

std::string CallSite::describe() const { return exec::describe(user_frame()); }

std::string CallSite::how_to_see_lines() const {
  bool unknown = false;
  for (void* address : addresses_) {
    if (in_foreign_library(address)) continue;
    for (const ResolvedFrame& resolved : resolve(address)) {
      if (resolved.users_own) return resolved.frame.file.empty() ? "compile with -g1 to see lines" : "";
      unknown = unknown || resolved.unknown;
    }
  }
  return unknown ? "compile with -g1, and do not strip the program, to see functions and lines" : "";
}

std::string describe(const Frame& frame) {
  const std::string function = short_name(frame.function);
  if (frame.file.empty()) return function;
  return std::string(base_name(frame.file)) + ":" + std::to_string(frame.line) + " in " + function;
}

}  // namespace rehearse::exec
