// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "cli/death/crash_record.h"
#include "cli/death/pipe.h"
#include "cli/sweep/seed_result.h"
#include "cli/sweep/worker.h"

namespace rehearse::cli {

// The worker processes of a sweep. A worker is a fork of this process, which therefore must not have threads. A worker
// runs one world after another. If a worker dies, a new one replaces it, and the seed that the dead worker ran has
// a result like any other seed (Verdict::crashed). A seed that does not end within Arguments::time_limit has a result,
// too (Verdict::interrupted), even if its worker must be killed and replaced.
class Workers {
 public:
  // `setup` must outlive this object. Throws std::system_error if processes or pipes are not available.
  Workers(const SweepSetup& setup, int jobs);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();  // kills busy workers, and waits until all have ended

  bool has_idle() const noexcept;
  bool has_busy() const noexcept;

  // Needs an idle worker.
  void start(std::uint64_t seed);

  struct Done {
    std::uint64_t seed = 0;
    SeedResult result;
    std::string error;  // why the seed's files could not be written; empty: no error
  };
  // Blocks until a seed is done, but at most for this time. May return an empty list earlier.
  std::vector<Done> wait(std::chrono::milliseconds longest);

  // Kills the workers whose seeds are above `bound` (no bound: all busy workers), without replacing them. Returns those
  // seeds.
  std::vector<std::uint64_t> abandon(std::optional<std::uint64_t> bound = std::nullopt);

 private:
  struct Process {
    pid_t pid = -1;
    Fd seeds, answers, printed;
    SharedCrashRecord crash;            // for the current seed
    std::optional<std::uint64_t> seed;  // nothing: the worker is idle
    std::chrono::nanoseconds since{};
    int asked = 0;  // how often the sweep asked an overdue run to end
  };

  static bool is_idle(const Process& process) noexcept;
  Process spawn();
  Done take(Process& process);
  Done buried(Process& process);
  bool is_overdue(Process& process) const;
  static int end(Process& process, bool kill);

  const SweepSetup& setup_;
  std::vector<Process> processes_;
};

}  // namespace rehearse::cli
