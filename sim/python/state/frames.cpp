// SPDX-License-Identifier: BSD-3-Clause
#include "python/state/frames.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <sys/mman.h>

#include "python/state/cpython.h"

namespace rehearse::python {
namespace {

constexpr std::size_t kBytesOfAll = std::size_t{1} << 30;
constexpr std::size_t kBytesOfPlace = 16;

std::string text_of(PyObject* text) {
  const char* const utf8 = PyUnicode_AsUTF8(text);
  if (utf8 == nullptr) PyErr_Clear();
  return utf8 != nullptr ? utf8 : "?";
}

// "step" for "main.<locals>.step"; empty for code that is in no function.
std::string short_name(std::string name) {
  constexpr std::string_view kLocals = "<locals>.";
  if (const auto inner = name.rfind(kLocals); inner != std::string::npos) name.erase(0, inner + kLocals.size());
  return name == "<module>" ? "" : name;
}

}  // namespace

Frames::Frames() {
  void* const memory = ::mmap(nullptr, kBytesOfAll, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "addresses for Python frames");
  addresses_.begin = reinterpret_cast<std::uintptr_t>(memory);
  addresses_.end = addresses_.begin + kBytesOfAll;
}

void* Frames::add(CodePlace place) {
  if ((places_.size() + 1) * kBytesOfPlace >= kBytesOfAll) throw std::length_error("too many places in Python code");
  places_.push_back(std::move(place));
  return reinterpret_cast<void*>(addresses_.begin + (places_.size() - 1) * kBytesOfPlace);
}

auto Frames::place_at(std::uintptr_t address) const noexcept -> const CodePlace* {
  const auto number = (address - addresses_.begin) / kBytesOfPlace;
  return number < places_.size() ? &places_[number] : nullptr;
}

void* Frames::address_of(PyCodeObject* code, int instruction) {
  const auto [known, is_new] = addresses_of_places_.try_emplace({code, instruction}, nullptr);
  if (is_new) {
    Py_INCREF(code);
    known->second = add({code, instruction});
  }
  return known->second;
}

// The line, the function and the file.
void Frames::write_place(std::uintptr_t address, std::span<char> out) const noexcept {
  const auto* const place = place_at(address);
  if (place == nullptr || place->code == nullptr) return;
  const auto text = [](PyObject* unicode) {
    return PyUnicode_IS_COMPACT_ASCII(unicode) ? static_cast<const char*>(PyUnicode_DATA(unicode)) : "?";
  };
  std::snprintf(out.data(), out.size(), "%d\n%s\n%s", PyCode_Addr2Line(place->code, place->instruction),
                text(name_of(place->code)), text(place->code->co_filename));
}

void* Frames::address_of(std::string_view place) {
  const auto line_end = place.find('\n'), name_end = place.find('\n', line_end + 1);
  if (line_end == std::string_view::npos || name_end == std::string_view::npos) return nullptr;
  exec::Frame frame;
  frame.function = short_name(std::string(place.substr(line_end + 1, name_end - line_end - 1)));
  frame.file = place.substr(name_end + 1);
  std::from_chars(place.data(), place.data() + line_end, frame.line);
  return add({nullptr, 0, std::move(frame)});
}

std::size_t Frames::capture(PyThreadState* state, std::span<void*> out) noexcept {
  if (state == nullptr || out.empty()) return 0;
  std::size_t count = 0;
  walk_frames(state, [&](PyCodeObject* code, int instruction) {
    out[count++] = address_of(code, instruction);
    return count < out.size();
  });
  return count;
}

exec::Interpreter::ResolvedAddress Frames::resolve(std::uintptr_t address) const {
  exec::Interpreter::ResolvedAddress resolved;
  const auto* const place = place_at(address);
  if (place == nullptr) return {{"??", "", 0}, false};
  if (place->code == nullptr) {
    resolved.frame = place->frame;
  } else {
    const bool attaches = attached_state() == nullptr;
    const auto held = attaches ? PyGILState_Ensure() : PyGILState_STATE{};
    resolved.frame.function = short_name(text_of(name_of(place->code)));
    resolved.frame.file = text_of(place->code->co_filename);
    resolved.frame.line = PyCode_Addr2Line(place->code, place->instruction);
    if (attaches) PyGILState_Release(held);
  }
  resolved.users_own = is_users(resolved.frame.file);
  return resolved;
}

// Files such as "<frozen importlib._bootstrap>" and "<string>" are nobody's.
bool Frames::is_users(const std::string& file) const {
  return !file.empty() && !file.starts_with('<') &&
         std::none_of(library_folders_.begin(), library_folders_.end(),
                      [&](const std::string& folder) { return file.starts_with(folder); });
}

}  // namespace rehearse::python
