// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/exec/call_site.h>

#include <unwind.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>
#include <system_error>
#include <unordered_map>
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

// Texts of places are put into many other texts. This finds the places again.
class MadePlaces {
 public:
  static MadePlaces& of_process() {
    static MadePlaces places;
    return places;
  }

  void add(const Place& place) {
    const std::lock_guard lock(mutex_);
    by_line_[place.line].try_emplace(place.text, place);
  }

  std::vector<Place> in(std::string_view words) const {
    const std::lock_guard lock(mutex_);
    std::map<std::string_view, const Place*> spoken_of;
    for (auto colon = words.find(':'); colon != words.npos; colon = words.find(':', colon + 1)) {
      int line = 0;
      const auto* const end = words.data() + words.size();
      if (std::from_chars(words.data() + colon + 1, end, line).ec != std::errc()) continue;
      const auto places = by_line_.find(line);
      if (places == by_line_.end()) continue;
      for (const auto& [text, place] : places->second) {
        if (is_around(words, colon, text)) spoken_of.emplace(text, &place);
      }
    }
    std::vector<Place> places;
    for (const auto& [text, place] : spoken_of) places.push_back(*place);
    return places;
  }

 private:
  // Whether the text of a place stands in `words`, with its colon there.
  static bool is_around(std::string_view words, std::size_t colon, std::string_view text) {
    const auto before = text.find(':');
    if (colon < before || words.substr(colon - before, text.size()) != text) return false;
    const auto is_of_name = [&](std::size_t i) {
      return i < words.size() && (std::isalnum(static_cast<unsigned char>(words[i])) != 0 || words[i] == '_');
    };
    return !is_of_name(colon - before + text.size()) && (colon == before || !is_of_name(colon - before - 1));
  }

  mutable std::mutex mutex_;
  std::unordered_map<int, std::map<std::string, Place>> by_line_;
};

}  // namespace

[[gnu::noinline]] std::size_t CallSite::capture_to(std::span<void*> out, std::size_t skip) noexcept {
  // The compiled frames behind those of an interpreter are its own and libraries', and cost more than all else.
  auto* const script = interpreter();
  if (const std::size_t count = script != nullptr ? script->frames(out) : 0; count > 0) return count;
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
  if (has_line(frame)) MadePlaces::of_process().add(place);
  return place;
}

std::vector<Place> places_in(std::string_view words) { return MadePlaces::of_process().in(words); }

}  // namespace rehearse::exec
