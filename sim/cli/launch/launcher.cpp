// SPDX-License-Identifier: BSD-3-Clause
#include "cli/launch/launcher.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <fmt/format.h>
#include <rehearse_internal/exec/interrupt.h>
#include <rehearse_internal/job/store_socket.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "cli/death/signals.h"
#include "cli/output_folder.h"
#include "cli/terminal/progress.h"

namespace rehearse::cli {
namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::milliseconds kLook{50};
constexpr std::chrono::seconds kGrace{30};  // after a rank failed: for the others to notice and report that
constexpr std::chrono::seconds kToEnd{10};  // from the first request to the second, which asks to end at once
constexpr std::chrono::seconds kToTell{3};  // from the second request to SIGKILL: the reports take a moment
// The least time between the two requests. Two signals that arrive together count as one, and the coordinator needs a
// moment to tell each rank for which ranks that rank waits.
constexpr std::chrono::milliseconds kBetween{300};
constexpr std::chrono::seconds kBeyondLimit{2};  // each process has the limit as well, and writes a better report

void show_line(std::size_t rank, std::string_view line) {
  fmt::print(stdout, "[{}] {}\n", rank, line);
  std::fflush(stdout);
}

volatile std::sig_atomic_t g_second_interrupt = 0;

// While an object of this class exists, a second interrupt is recorded, and a third one ends this process.
class NotedSecondInterrupt {
 public:
  NotedSecondInterrupt() {
    g_second_interrupt = 0;
    end_at_second_interrupt([](int, siginfo_t*, void*) { g_second_interrupt = 1; });
  }
  NotedSecondInterrupt(const NotedSecondInterrupt&) = delete;
  NotedSecondInterrupt& operator=(const NotedSecondInterrupt&) = delete;
  ~NotedSecondInterrupt() { end_at_second_interrupt(nullptr); }

  static bool came() { return g_second_interrupt != 0; }
};

// Asks processes to end. If a process goes on, asks it a second time: it then reports where its rank is, and ends at
// once. Kills processes that still run after that.
class Stopping {
 public:
  explicit Stopping(Processes& processes) : processes_(processes) {}

  void ask(nanoseconds now, int signal) {
    if (asked_at_ != kNever) return;
    asked_at_ = now;
    processes_.signal_all(signal);
  }

  void look(nanoseconds now) {
    const auto patience = NotedSecondInterrupt::came() ? nanoseconds(kBetween) : nanoseconds(kToEnd);
    if (asked_at_ != kNever && now - asked_at_ > patience) ask_again(now);
    if (asked_again_at_ != kNever && now - asked_again_at_ > kToTell) processes_.kill_all();
  }

 private:
  void ask_again(nanoseconds now) {
    if (asked_again_at_ != kNever) return;
    asked_again_at_ = now;
    processes_.signal_all(SIGINT);
  }

  Processes& processes_;
  static constexpr auto kNever = nanoseconds::max();
  nanoseconds asked_at_ = kNever, asked_again_at_ = kNever;
};

std::vector<std::string> environment_of(int rank, const RankLaunch& launch, std::uint16_t port) {
  std::vector<std::string> all = {fmt::format("RANK={}", rank),
                                  fmt::format("WORLD_SIZE={}", launch.ranks),
                                  fmt::format("LOCAL_RANK={}", rank),
                                  fmt::format("LOCAL_WORLD_SIZE={}", launch.ranks),
                                  "MASTER_ADDR=127.0.0.1",
                                  fmt::format("MASTER_PORT={}", port),
                                  "TORCHELASTIC_USE_AGENT_STORE=True",  // this process serves the store
                                  "TORCHELASTIC_RESTART_COUNT=0",
                                  fmt::format("{}=1", kLaunchedByUs)};
  if (std::getenv("OMP_NUM_THREADS") == nullptr) all.emplace_back("OMP_NUM_THREADS=1");
  // c10d warns when a call of the store exceeds its time limit. For real failures it throws, so hide the warnings.
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) all.emplace_back("TORCH_CPP_LOG_LEVEL=ERROR");
  return all;
}

c10::intrusive_ptr<c10d::TCPStore> serve_store() {
  // Listen on 127.0.0.1 only: all ranks are on this host, and anybody else who reaches the store could end the run or
  // change its results.
  const auto socket = listen_at("127.0.0.1", 0);
  if (!socket) throw std::system_error(EADDRNOTAVAIL, std::generic_category(), "127.0.0.1, for the store of the ranks");
  c10d::TCPStoreOptions options;
  options.port = socket->port;
  options.masterListenFd = socket->file;
  options.isServer = true;
  options.waitWorkers = false;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

RankEnds wait_for_all(Processes& processes, const RankLaunch& launch) {
  RankEnds ends;
  Stopping stopping(processes);
  const auto start = real_time();
  std::optional<nanoseconds> first_bad;
  while (processes.any_runs()) {
    processes.look(kLook);
    const auto now = real_time();
    const auto all = processes.ends();
    if (!first_bad && std::ranges::any_of(all, [](const auto& end) { return end.went_wrong(); })) first_bad = now;
    if (exec::interrupt_requested()) {
      ends.interrupted = true;
      stopping.ask(now, SIGINT);
    }
    if (launch.time_limit && now - start > *launch.time_limit + kBeyondLimit) {
      ends.overdue = true;
      stopping.ask(now, SIGTERM);
    }
    if (first_bad && now - *first_bad > kGrace) stopping.ask(now, SIGTERM);
    // A process that SIGSTOP has stopped handles no request, so it would never end.
    if ((first_bad || ends.interrupted || ends.overdue) && processes.only_stopped_ones_run()) processes.kill_all();
    stopping.look(now);
  }
  ends.ranks = processes.ends();
  return ends;
}

}  // namespace

bool is_launched_by_us() { return std::getenv(kLaunchedByUs) != nullptr; }

RankEnds launch_ranks(const RankLaunch& launch) {
  const NotedSecondInterrupt second;
  const auto store = serve_store();
  Processes processes(show_line);
  for (int rank = 0; rank < launch.ranks; ++rank) {
    const auto folder = rank_folder(launch.folder, rank);
    std::filesystem::create_directories(folder);
    processes.start({launch.words, environment_of(rank, launch, store->getPort()), folder / "output.txt"});
  }
  return wait_for_all(processes, launch);
}

ProcessEnd run_alone(const ProcessStart& start) {
  Processes processes([](std::size_t, std::string_view) {});
  processes.start(start);
  const NotedSecondInterrupt second;
  int passed_on = 0;
  while (processes.any_runs()) {
    processes.look(kLook);
    const int came = NotedSecondInterrupt::came() ? 2 : exec::interrupt_requested() ? 1 : 0;
    if (passed_on == came) continue;
    processes.signal_all(SIGINT);  // one signal per look(), because two that arrive together count as one
    ++passed_on;
  }
  return processes.ends().front();
}

}  // namespace rehearse::cli
