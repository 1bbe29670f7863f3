// SPDX-License-Identifier: BSD-3-Clause
// The runner of Mode::real, as executables find it: which one it is depends on what carries the run.
#include <rehearse/job/runner.h>

#include "runner/one_process_runner.h"

namespace rehearse::real {
namespace {

class RealRunner final : public Runner {
 public:
  std::unique_ptr<RunRecord> run(const RunRequest& request, const JobBody& body, const ShowProgress& show) override {
    if (request.carrier == Carrier::gloo || request.carrier == Carrier::processes) {
      throw RunnerUnavailable("a process a rank is not there yet");
    }
    return OneProcessRunner().run(request, body, show);
  }
};

}  // namespace
}  // namespace rehearse::real

// The linker is told to look for it, and takes this file in with it.
extern "C" const rehearse::RegisteredRunner rehearse_real_runner([]() -> std::unique_ptr<rehearse::Runner> {
  return std::make_unique<rehearse::real::RealRunner>();
});
