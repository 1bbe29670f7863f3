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

// The kind of run.
enum class Mode {
  simulation,  // all ranks in this process, collectives in memory, virtual time
  real,        // devices, NCCL or gloo, the machine's time
};

// The transport of a real run.
enum class Transport {
  automatic,  // NCCL if there are GPUs, else gloo
  nccl,       // on GPUs; ranks are fibers of this process unless a launcher started a process for each
  gloo,       // one process per rank, on the CPU
  processes,  // one process per rank, each with a GPU, over NCCL
};

// The names in scenarios and on command lines: "automatic", "nccl", ..., in the order above.
const std::vector<std::string>& transport_names();

// The request for a run: the part that is the same in every mode.
struct RunRequest {
  int ranks = 2;
  std::uint64_t seed = 1;
  std::chrono::milliseconds timeout = std::chrono::minutes(30);  // for each operation; 0: none
  bool coalesced_as_one = false;
  std::size_t stack_bytes = std::size_t{8} << 20;
  bool keep_all_events = false;
  bool call_sites = false;
  Transport transport = Transport::automatic;
};

using JobBody = std::function<void(RankContext&)>;
// Shows RankContext::progress() of rank 0 to people. May be empty.
using ShowProgress = std::function<void(std::int64_t done, std::int64_t total, std::string_view text)>;

// Runs a job outside of the simulation. The simulation is not a Runner, because it has schedules and replays, which
// this interface does not know.
class Runner {
 public:
  virtual ~Runner() = default;

  // Runs `body` once on each rank of this process, and blocks until all have ended. The record holds the failures of
  // ranks. Throws RunnerUnavailable if the run cannot begin.
  virtual std::unique_ptr<RunRecord> run(const RunRequest& request, const JobBody& body, const ShowProgress& show) = 0;
};

// This machine or this executable cannot make the requested real run. The text says what is missing and how to get it.
class RunnerUnavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Whether the program links a library that runs jobs for real.
bool has_real_runner() noexcept;

// Throws RunnerUnavailable, which names the library, if the program links none.
void require_real_runner();

// Makes the runner of Mode::real. Throws RunnerUnavailable as require_real_runner() does, and if a launcher's
// environment variables are incomplete or wrong. Whether this machine has what the run needs shows only in run().
std::unique_ptr<Runner> make_real_runner();

// A static object of this type in a library registers its runner for the whole executable.
class RegisteredRunner {
 public:
  explicit RegisteredRunner(std::unique_ptr<Runner> (*make)());
};

}  // namespace rehearse
