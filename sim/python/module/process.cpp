// SPDX-License-Identifier: BSD-3-Clause
#include "python/module/process.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/pybind.h>

#include "exec/fiber/fiber.h"
#include "python/preload/thread_values.h"

namespace rehearse::python {
namespace {

namespace py = pybind11;

// What one release and one taking of the interpreter lock signals: CPython has two conditions for it.
std::vector<const void*> conditions_of_lock() {
  const exec::SignalledConditions signalled;
  PyEval_RestoreThread(PyEval_SaveThread());
  if (signalled.all().empty()) throw std::runtime_error("Python's interpreter lock signals no condition variable");
  return signalled.all();
}

}  // namespace

Process::Process(std::vector<std::string> library_folders, PyObject* generator, const Callbacks& callbacks)
    : callbacks_(callbacks), conditions_(conditions_of_lock()) {
  frames_.set_library_folders(std::move(library_folders));
  exchanged_.main_thread = find_main_thread();
  exchanged_.default_generator_object = generator;
  exchanged_.default_generator = reinterpret_cast<void**>(&reinterpret_cast<THPGenerator*>(generator)->cdata);
}

std::size_t Process::frames(std::span<void*> out) noexcept {
  return exec::fiber_of_thread() != nullptr ? frames_.capture(PyGILState_GetThisThreadState(), out) : 0;
}

std::size_t Process::frames_of(const std::byte* image, std::span<void*> out) noexcept {
  return frames_.capture(PythonState::state_in(image), out);
}

std::vector<exec::Interpreter::Branch> Process::branches_around(const std::string& file, int line) {
  const py::gil_scoped_acquire lock;
  std::vector<Branch> branches;
  for (const auto& [text, begin] :
       py::handle(callbacks_.branches_around)(file, line).cast<std::vector<std::pair<std::string, int>>>())
    branches.push_back({text, begin});
  return branches;
}

std::string Process::source_of(const std::string& file, int line) {
  const py::gil_scoped_acquire lock;
  return py::handle(callbacks_.source_of)(file, line).cast<std::string>();
}

void Process::begin_repetition() {
  const py::gil_scoped_acquire lock;
  py::handle(callbacks_.begin_repetition)();
}

bool Process::owns_condition(const void* condition) const noexcept {
  return std::find(conditions_.begin(), conditions_.end(), condition) != conditions_.end();
}

std::unique_ptr<exec::RankState> Process::state_around(exec::RankState& inner) {
  auto state = std::make_unique<PythonState>(exchanged_, dynamic_cast<torch_state::TorchRankState&>(inner));
  state_ = state.get();
  return state;
}

void Process::note_fork() noexcept { keep_thread_values(); }

}  // namespace rehearse::python
