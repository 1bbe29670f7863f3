// SPDX-License-Identifier: BSD-3-Clause
#include "python/module/rank.h"

#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <rehearse_internal/exec/call_site_scope.h>

#include "exec/fiber/fiber.h"

namespace rehearse::python {
namespace {

namespace py = pybind11;

std::vector<RankContext*> g_contexts;  // of the running world, by rank

RankContext*& context_slot(int rank) {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= g_contexts.size()) g_contexts.resize(index + 1);
  return g_contexts[index];
}

struct Failure {
  std::string text;
  std::vector<void*> places;
};

std::optional<Failure> failure_of(Process& process, const RankCode& code, const py::error_already_set& error) {
  if (error.trace()) PyException_SetTraceback(error.value().ptr(), error.trace().ptr());
  const py::object told = code.describe(error.value());
  if (told.is_none()) return std::nullopt;
  const auto [text, places] = told.cast<std::pair<std::string, std::vector<std::pair<py::object, int>>>>();
  Failure failure{text, {}};
  for (const auto& [where, instruction] : places)
    failure.places.push_back(process.places().address_of(reinterpret_cast<PyCodeObject*>(where.ptr()), instruction));
  return failure;
}

// Runs the body with a state attached. Keeps no Python object beyond the call.
std::optional<Failure> failure_in(Process& process, const RankCode& code, const RankContext& context) {
  try {
    code.begin(context.rank(), context.size())();
  } catch (const py::error_already_set& error) {
    return failure_of(process, code, error);
  }
  return std::nullopt;
}

}  // namespace

// The thread state stays where it is if the world ends meanwhile, as the fiber does.
void run_rank(Process& process, const RankCode& code, RankContext& context) {
  context_slot(context.rank()) = &context;
  PyThreadState* const state = PyThreadState_New(PyInterpreterState_Main());
  PyEval_RestoreThread(state);
  process.state()->set_main_state(context.rank(), state);
  const auto failure = failure_in(process, code, context);
  process.state()->set_main_state(context.rank(), nullptr);
  PyThreadState_Clear(state);
  PyEval_SaveThread();
  PyThreadState_Delete(state);
  context_slot(context.rank()) = nullptr;
  if (!failure) return;
  const exec::CallSiteScope scope(failure->places);
  throw PythonFailure(failure->text);
}

int rank_or_host() noexcept {
  const auto* const fiber = exec::fiber_of_thread();
  return fiber != nullptr ? fiber->rank : -1;
}

RankContext& context_of_rank() {
  const int rank = rank_or_host();
  if (rank < 0) throw std::logic_error("this function of rehearse works in ranks only, and no rank runs here");
  return *context_slot(rank);
}

}  // namespace rehearse::python
