// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rehearse_internal/exec/interpreter.h>

namespace rehearse::python {

// Gives each place in Python code an address, so that a Python frame is one in a call site as a compiled one is. The
// addresses are in memory that nobody uses.
class Frames {
 public:
  Frames();

  void* address_of(PyCodeObject* code, int instruction);
  // Of the frames of a thread state, innermost first; see exec::Interpreter::frames(). Of another thread's only while
  // this thread holds the interpreter lock.
  std::size_t capture(PyThreadState* state, std::span<void*> out) noexcept;

  exec::Interpreter::AddressRange addresses() const noexcept { return addresses_; }
  // See exec::Interpreter.
  exec::Interpreter::ResolvedAddress resolve(std::uintptr_t address) const;
  void write_place(std::uintptr_t address, std::span<char> out) const noexcept;
  void* address_of(std::string_view place);

  // Files below these folders are not the user's.
  void set_library_folders(std::vector<std::string> folders) { library_folders_ = std::move(folders); }

 private:
  struct CodePlace {
    PyCodeObject* code;  // null: of another process
    int instruction;
    exec::Frame frame = {};  // of another process
  };

  void* add(CodePlace place);
  const CodePlace* place_at(std::uintptr_t address) const noexcept;
  bool is_users(const std::string& file) const;

  exec::Interpreter::AddressRange addresses_;
  std::vector<CodePlace> places_;  // their code is never released
  std::map<std::pair<PyCodeObject*, int>, void*> addresses_of_places_;
  std::vector<std::string> library_folders_;
};

}  // namespace rehearse::python
