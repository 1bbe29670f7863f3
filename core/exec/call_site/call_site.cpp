// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/exec/call_site.h>

#include <unwind.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <rehearse_internal/exec/call_site_scope.h>
#include <rehearse_internal/exec/interpreter.h>

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
  // The stack of a fiber ends in code without a caller.
  if (address == 0) return _URC_END_OF_STACK;
  if (walk.skip > 0) {
    --walk.skip;
    return _URC_NO_REASON;
  }
  if (walk.count == walk.out.size()) return _URC_END_OF_STACK;
  // Return addresses are one past the call, and lookups subtract 1. For a frame that a signal interrupted, the address
  // is the instruction itself, so add 1.
  if (interrupted != 0) ++address;
  walk.out[walk.count++] = reinterpret_cast<void*>(canonical_address(address));
  return _URC_NO_REASON;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The user's frames up to the first for which `is_last` returns true, including that one.
std::vector<Frame> user_frames_until(const std::vector<void*>& addresses, bool (*is_last)(const Frame&)) {
  std::vector<Frame> frames;
  for (void* address : addresses) {
    // Resolving a name in LibTorch costs milliseconds, and nobody needs these frames.
    if (in_foreign_library(address)) continue;
    for (const ResolvedFrame& resolved : resolve(address)) {
      if (!resolved.users_own) continue;
      frames.push_back(resolved.frame);
      if (is_last(resolved.frame)) return frames;
    }
  }
  return frames;
}

bool has_line(const Frame& frame) { return !frame.file.empty(); }

std::vector<Place> places_of(const std::vector<Frame>& frames) {
  std::vector<Place> places;
  auto rest = frames.begin();
  if (rest == frames.end()) return places;
  places.push_back(place_of(*rest++));
  if (const auto known = std::find_if(rest, frames.end(), has_line);
      !has_line(frames.front()) && known != frames.end()) {
    auto text = places.front().text + ", from ";
    places.front() = place_of(*known);
    places.front().text.insert(0, text);
    rest = known + 1;
  }
  for (; rest != frames.end(); ++rest) places.push_back(place_of(*rest));
  return places;
}

}  // namespace

[[gnu::noinline]] std::size_t CallSite::capture_to(std::span<void*> out, std::size_t skip) noexcept {
  // Frames of an interpreter come first. The compiled ones behind them are its own, and libraries that it called.
  auto* const script = interpreter();
  const std::size_t count = script != nullptr ? script->frames(out.first(out.size() / 2)) : 0;
  Walk walk{out.subspan(count), skip + 1};
  _Unwind_Backtrace(visit, &walk);
  return count + walk.count;
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

std::vector<Frame> CallSite::user_frames() const {
  return user_frames_until(addresses_, [](const Frame&) { return false; });
}

std::vector<Place> CallSite::user_places() const { return places_of(user_frames()); }

Place CallSite::place() const {
  auto places = places_of(user_frames_until(addresses_, has_line));
  return places.empty() ? Place() : std::move(places.front());
}

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
  auto function = frame.file.ends_with(".py") ? frame.function : short_name(frame.function);
  if (frame.file.empty()) return function;
  const auto line = (frame.short_file.empty() ? std::string(base_name(frame.file)) : frame.short_file) + ":" +
                    std::to_string(frame.line);
  return function.empty() ? line : line + " in " + function;
}

Place place_of(const Frame& frame) {
  Place place(describe(frame));
  place.file = frame.file;
  place.line = frame.line;
  place.function = frame.function;
  return place;
}

}  // namespace rehearse::exec
