// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse_internal/exec/interpreter.h>

#include "python/state/frames.h"
#include "python/state/python_state.h"

namespace rehearse::python {

// CPython as this process's interpreter.
class Process final : public exec::Interpreter {
 public:
  // Functions of Python's, which must live as long as the process. `branches_around` and `source_of` take a file and a
  // line, and return a list of (text, line), and a text. `begin_repetition` takes nothing.
  struct Callbacks {
    PyObject *branches_around, *source_of, *begin_repetition;
  };
  // Call it on Python's main thread, with a state attached, before the first world. Throws std::runtime_error if ranks
  // cannot share this Python. `generator`: torch.default_generator, which must live as long as the process.
  Process(std::vector<std::string> library_folders, PyObject* generator, const Callbacks& callbacks);

  std::size_t frames(std::span<void*> out) noexcept override;
  std::size_t frames_of(const std::byte* image, std::span<void*> out) noexcept override;
  AddressRange addresses() const noexcept override { return frames_.addresses(); }
  ResolvedAddress resolve(std::uintptr_t address) override { return frames_.resolve(address); }
  void write_place(std::uintptr_t address, std::span<char> out) const noexcept override {
    frames_.write_place(address, out);
  }
  void* address_of(std::string_view place) override { return frames_.address_of(place); }
  std::vector<Branch> branches_around(const std::string& file, int line) override;
  std::string source_of(const std::string& file, int line) override;
  bool owns_condition(const void* condition) const noexcept override;
  std::unique_ptr<exec::RankState> state_around(exec::RankState& inner) override;
  void note_fork() noexcept override;
  void begin_repetition() override;

  Exchanged& exchanged() noexcept { return exchanged_; }
  Frames& places() noexcept { return frames_; }
  // Of the running world; null: none runs.
  PythonState* state() noexcept { return state_; }

 private:
  Frames frames_;
  Exchanged exchanged_;
  const Callbacks callbacks_;
  std::vector<const void*> conditions_;  // of the interpreter lock
  PythonState* state_ = nullptr;
};

}  // namespace rehearse::python
