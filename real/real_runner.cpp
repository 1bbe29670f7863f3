// SPDX-License-Identifier: BSD-3-Clause
// Provides the runner of real runs to every program that links this library. The kind of runner depends on whether a
// launcher started this process as one of several, and on the transport.
#include <memory>
#include <string>

#include <rehearse/job/runner.h>
#include <rehearse_internal/job/launched.h>
#include <rehearse_internal/job/run_options.h>
#include <rehearse_internal/job/run_record.h>

#include "process/process_runner.h"
#if REHEARSE_HAS_NCCL
#include "runner/one_process_runner.h"
#endif

// The library's link options name this symbol, so that the linker keeps this file.
extern "C" {
extern const int rehearse_real_runner;
const int rehearse_real_runner = 1;
}

namespace rehearse::real {
namespace {

std::unique_ptr<Runner> one_process_runner() {
#if REHEARSE_HAS_NCCL
  return std::make_unique<OneProcessRunner>();
#else
  throw RunnerUnavailable(
      "this executable cannot run ranks on GPUs: it was built without the headers of CUDA and NCCL (-DREHEARSE_REAL=ON "
      "says what is missing); --with=gloo runs a process for each rank, on the CPU");
#endif
}

// A process that no launcher started.
class LoneProcess final : public Runner {
 public:
  std::unique_ptr<RunRecord> run(const RunRequest& request, const JobBody& body, const ShowProgress& show) override {
    if (is_of_processes(request.transport)) {
      throw RunnerUnavailable(
          "this process is not one of several: start it with torchrun, mpirun or srun (one process per rank, with "
          "MASTER_ADDR and MASTER_PORT), or with `run --real --with=gloo`, which starts them itself");
    }
    return one_process_runner()->run(request, body, show);
  }
};

std::unique_ptr<Runner> make_runner() {
  if (const auto process = launched_process()) return std::make_unique<ProcessRunner>(*process);
  return std::make_unique<LoneProcess>();
}

const RegisteredRunner registered(make_runner);

}  // namespace
}  // namespace rehearse::real
