// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

class RankContext;
struct RunRecord;  // <rehearse_internal/job/run_record.h>

// What carries the ranks of a job.
enum class Mode {
  simulation,  // all ranks in this process, collectives in memory, virtual time
  real,        // devices, NCCL or gloo, the machine's time
};

// What carries a real run.
enum class Carrier {
  automatic,  // NCCL where there are GPUs, else gloo
  nccl,       // the ranks that are not in processes of their own yet are fibers of this one, on its GPUs
  gloo,       // a process a rank, on the CPU
  processes,  // a process a rank, each with a GPU, by NCCL
};

// "automatic", "nccl", ...: what scenarios and command lines call them, in the order above.
const std::vector<std::string>& carrier_names();

// What a run is asked for, as far as it is the same in every mode.
struct RunRequest {
  int ranks = 2;
  std::uint64_t seed = 1;
  std::chrono::milliseconds timeout = std::chrono::minutes(30);  // of each operation; 0: none
  bool coalesced_as_one = false;
  std::size_t stack_bytes = std::size_t{8} << 20;
  bool keep_all_events = false;
  bool call_sites = false;
  Carrier carrier = Carrier::automatic;
};

using JobBody = std::function<void(RankContext&)>;
// For people to watch: RankContext::progress() of rank 0. May be empty.
using ShowProgress = std::function<void(std::int64_t done, std::int64_t total, std::string_view text)>;

// Runs a job outside of the simulation. Simulation is not one of them: it has seeds, schedules and replays, which this
// interface knows nothing of.
class Runner {
 public:
  virtual ~Runner() = default;

  // Runs `body` once on each rank that this process has. Blocks until they have ended. What goes wrong in a rank is in
  // the record. Throws RunnerUnavailable where it cannot begin.
  virtual std::unique_ptr<RunRecord> run(const RunRequest& request, const JobBody& body, const ShowProgress& show) = 0;
};

// This machine, or this executable, cannot run a job that way. The text says what is missing and how to get it.
class RunnerUnavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Does the program link a library that runs jobs for real?
bool has_real_runner() noexcept;

// Throws RunnerUnavailable, which names the library, if the program links none.
void require_real_runner();

// Makes the runner of Mode::real. Throws RunnerUnavailable as require_real_runner() does, and if this machine lacks
// what the runner needs.
std::unique_ptr<Runner> make_real_runner();

// A static object of this type in a library makes its runner known to all that the executable links.
class RegisteredRunner {
 public:
  explicit RegisteredRunner(std::unique_ptr<Runner> (*make)());
};

}  // namespace rehearse
