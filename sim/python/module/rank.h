// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <functional>
#include <stdexcept>

#include <rehearse/job/rank_context.h>

#include "python/module/process.h"

namespace rehearse::python {

// What runs in each rank. `begin` returns the rank's body, a callable without arguments. `describe(exception)` returns
// None if the exception is no failure (sys.exit(0)); otherwise a text and the traceback's places, innermost first, as
// pairs of code and instruction.
struct RankCode {
  std::function<pybind11::object(int rank, int size)> begin;
  pybind11::function describe;
};

// Runs the code as the body of a rank: in a thread state of its own. Throws PythonFailure for an exception of the code.
// No thread state may be attached.
void run_rank(Process& process, const RankCode& code, RankContext& context);

// An exception that left a rank's Python code.
class PythonFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The context of the calling rank. Throws std::logic_error outside of ranks.
RankContext& context_of_rank();
// The calling rank; -1: none.
int rank_or_host() noexcept;

}  // namespace rehearse::python
