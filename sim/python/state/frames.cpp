// SPDX-License-Identifier: BSD-3-Clause
#include "python/state/frames.h"

#include <algorithm>
#include <stdexcept>
#include <system_error>

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

void* Frames::address_of(PyCodeObject* code, int instruction) {
  const auto [number, is_new] = numbers_.try_emplace({code, instruction}, places_.size());
  if (is_new) {
    if ((places_.size() + 1) * kBytesOfPlace >= kBytesOfAll) throw std::length_error("too many places in Python code");
    Py_INCREF(code);
    places_.push_back({code, instruction});
  }
  return reinterpret_cast<void*>(addresses_.begin + number->second * kBytesOfPlace);
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
  const auto& place = places_.at((address - addresses_.begin) / kBytesOfPlace);
  const bool attaches = attached_state() == nullptr;
  const auto held = attaches ? PyGILState_Ensure() : PyGILState_STATE{};
  exec::Interpreter::ResolvedAddress resolved;
  resolved.frame.function = short_name(text_of(name_of(place.code)));
  resolved.frame.file = text_of(place.code->co_filename);
  resolved.frame.line = PyCode_Addr2Line(place.code, place.instruction);
  if (attaches) PyGILState_Release(held);
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
