// SPDX-License-Identifier: BSD-3-Clause
#include "python/module/rank.h"

#include <cstring>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/exec/call_site_scope.h>
#include <rehearse_internal/exec/this_rank.h>

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
  bool is_check = false;
  std::vector<void*> places{};
};

std::optional<Failure> failure_of(Process& process, const RankCode& code, const py::error_already_set& error) {
  if (error.trace()) PyException_SetTraceback(error.value().ptr(), error.trace().ptr());
  const py::object told = code.describe(error.value());
  if (told.is_none()) return std::nullopt;
  const auto [text, places] = told.cast<std::pair<std::string, std::vector<std::pair<py::object, int>>>>();
  Failure failure{text, error.matches(py::module_::import("_rehearse").attr("CheckError"))};
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

template <class Error>
void throw_again(const Error& error, const std::string& text) {
  const std::string_view first_line(error.what(), std::strcspn(error.what(), "\n"));
  if (text.find(first_line) != std::string::npos) throw Error(error);
}

// An error of torch.distributed is that of a call, whose type tells the verdict. `text`: what Python has made of it.
void throw_as_the_call_did(const std::string& text) {
  const auto errors = exec::this_rank::errors_of_last_calls();
  for (auto error = errors.rbegin(); error != errors.rend(); ++error) {
    try {
      std::rethrow_exception(*error);
    } catch (const TimeoutError& timeout) {
      throw_again(timeout, text);
    } catch (const CommError& failed) {
      throw_again(failed, text);
    } catch (const c10::DistStoreError& failed) {
      throw_again(failed, text);
    } catch (const std::exception&) {  // the exception of another library, whose type tells nothing
    }
  }
}

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
  if (failure->is_check) throw CheckError(failure->text);
  throw_as_the_call_did(failure->text);
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
