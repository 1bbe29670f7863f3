// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Python.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <rehearse_internal/exec/interpreter.h>

#include "python/state/frames.h"
#include "python/state/python_state.h"

namespace rehearse::python {

// CPython as this process's interpreter.
class Process final : public exec::Interpreter {
 public:
  // Call it on Python's main thread, with a state attached, before the first world. Throws std::runtime_error if ranks
  // cannot share this Python. `generator`: torch.default_generator, which must live as long as the process.
  Process(std::vector<std::string> library_folders, PyObject* generator);

  std::size_t frames(std::span<void*> out) noexcept override;
  AddressRange addresses() const noexcept override { return frames_.addresses(); }
  ResolvedAddress resolve(std::uintptr_t address) override { return frames_.resolve(address); }
  bool owns_condition(const void* condition) const noexcept override;
  std::unique_ptr<exec::RankState> state_around(exec::RankState& inner) override;
  void note_fork() noexcept override;

  Exchanged& exchanged() noexcept { return exchanged_; }
  Frames& places() noexcept { return frames_; }
  // Of the running world; null: none runs.
  PythonState* state() noexcept { return state_; }

 private:
  Frames frames_;
  Exchanged exchanged_;
  std::vector<const void*> conditions_;  // of the interpreter lock
  PythonState* state_ = nullptr;
};

}  // namespace rehearse::python
