// SPDX-License-Identifier: BSD-3-Clause
// Contract: the same job on real processes, with c10d's gloo and TCPStore: the test kills one process and starts it
// again. All processes end with the parameters of a run without the kill.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <any>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gloo/transport/device.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <rehearse/comm/object_collectives.h>
#include <rehearse_internal/exec/machine_time.h>

#include "elastic_ddp/training.h"

namespace rehearse::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "--elastic-rank";
// With three processes, gloo's order of additions depends on the buckets, which change after the first step of a round.
constexpr int kProcesses = 2;
const elastic_ddp::Job kProcessJob{.steps = 4, .rows = 6, .save_every = 1};

struct Who {
  int rank = 0;
  int incarnation = 0;
  int port = 0;
  int killed_at = -1;  // kills itself at the beginning of this step, in its first incarnation; negative: never
};

// The least that a job needs of a context.
class BareContext final : public RankContext {
 public:
  explicit BareContext(const Who& who) : who_(who), generator_(at::detail::getDefaultCPUGenerator()) {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(who.port);
    options.waitWorkers = false;
    store_ = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  }

  int rank() const noexcept override { return who_.rank; }
  int size() const noexcept override { return kProcesses; }
  int incarnation() const noexcept override { return who_.incarnation; }
  const Group& group() const noexcept override { return none_; }
  const c10::intrusive_ptr<c10d::Store>& store() const noexcept override { return store_; }
  Group new_group(const std::vector<int>&, std::string_view) override { return {}; }
  Group new_local_group(const std::vector<int>& ranks, std::string_view name) override {
    const auto place = std::find(ranks.begin(), ranks.end(), who_.rank) - ranks.begin();
    const auto own = c10::make_intrusive<c10d::PrefixStore>(std::string(name), store_);
    const auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(60));
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
    const auto rank = static_cast<int>(place);
    const auto size = static_cast<int>(ranks.size());
    c10::intrusive_ptr<c10d::Backend> gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(own, rank, size, options);
    auto group = c10::make_intrusive<c10d::ProcessGroup>(own, rank, size);
    group->setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::GLOO, gloo);
    group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
    group->setGroupName(std::string(name));
    return Group(std::move(group));
  }
  at::Generator& generator() const noexcept override { return generator_; }
  at::Device device() const noexcept override { return at::kCPU; }
  VirtualTime now() const noexcept override { return VirtualTime(exec::machine_time()); }
  void compute(VirtualDuration) override {}
  void progress(std::int64_t done, std::int64_t, std::string_view) override {
    if (who_.incarnation == 0 && done == who_.killed_at) kill(getpid(), SIGKILL);
  }

 protected:
  void push_label(std::string_view) override {}
  void pop_label() noexcept override {}
  void count_check(std::string_view) override {}
  void keep_result(std::string_view, at::Tensor) override {}
  std::any& local_slot(const void* key) override { return slots_[key]; }

 private:
  const Who who_;
  c10::intrusive_ptr<c10d::Store> store_;
  mutable at::Generator generator_;
  Group none_;
  std::map<const void*, std::any> slots_;
};

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::optional<int> run_as_rank(int argc, char** argv) {
  if (argc != 7 || std::string_view(argv[1]) != kMark) return std::nullopt;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // if the test is killed, no process stays behind
  std::signal(SIGPIPE, SIG_IGN);     // as Python does: writing to a peer that is gone is then an error of the call
  try {
    at::set_num_threads(1);
    BareContext context({std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]), std::atoi(argv[5])});
    const auto parameters = elastic_ddp::train(context, kProcessJob);
    if (!parameters.defined()) throw std::runtime_error("the others had ended before");
    const auto bytes = comm::to_bytes(parameters);
    std::ofstream(argv[6], std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}

class Processes {
 public:
  Processes() {
    std::string name = fs::temp_directory_path() / "rehearse_elastic_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder can be made");
    folder_ = name;
    c10d::TCPStoreOptions options;
    options.port = 0;
    options.isServer = true;
    options.waitWorkers = false;
    store_ = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() {
    for (const auto& [pid, who] : running_) kill(pid, SIGKILL);
    for (const auto& [pid, who] : running_) waitpid(pid, nullptr, 0);
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  // Returns the parameters of each rank at the end. Starts a killed process again.
  std::vector<at::Tensor> run(int victim, int killed_at) {
    for (int rank = 0; rank < kProcesses; ++rank) start({rank, 0, store_->getPort(), rank == victim ? killed_at : -1});
    while (!running_.empty()) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, 0);
      const auto ended = running_.extract(pid);
      if (ended.empty()) continue;
      Who who = ended.mapped();
      if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && who.rank == victim && who.incarnation == 0) {
        ++kills_;
        ++who.incarnation;
        start(who);
      } else if (status != 0) {
        // Without this error, the other processes would wait until their calls time out.
        throw std::runtime_error(
            fmt::format("rank {} ended with status {}: {}", who.rank, status, text_of(file(who.rank, "output"))));
      }
    }
    std::vector<at::Tensor> parameters;
    for (int rank = 0; rank < kProcesses; ++rank) {
      parameters.push_back(comm::from_bytes(text_of(file(rank, "parameters"))).toTensor());
    }
    return parameters;
  }

  int kills() const noexcept { return kills_; }

 private:
  fs::path file(int rank, const char* what) const { return folder_ / fmt::format("{}{}", what, rank); }

  void start(const Who& who) {
    std::vector<std::string> words{"elastic rank",
                                   kMark,
                                   std::to_string(who.rank),
                                   std::to_string(who.incarnation),
                                   std::to_string(who.port),
                                   std::to_string(who.killed_at),
                                   file(who.rank, "parameters")};
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string output = file(who.rank, "output");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_CREAT | O_APPEND | O_WRONLY, 0644);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    pid_t child = -1;
    const int failed = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw std::runtime_error("a rank's process cannot be started");
    running_[child] = who;
  }

  fs::path folder_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
  std::map<pid_t, Who> running_;
  int kills_ = 0;
};

TEST(KilledProcess, StartedAgain_EndsAsWithoutTheKill) {
  const auto expected = Processes().run(-1, -1);
  for (const auto& parameters : expected) EXPECT_TRUE(at::equal(parameters, expected[0]));
  const std::vector<std::pair<int, int>> kills{{0, 1}, {1, 3}, {1, 0}, {0, 2}};
  for (const auto& [victim, step] : kills) {
    Processes processes;
    const auto parameters = processes.run(victim, step);
    EXPECT_EQ(processes.kills(), 1);
    for (const auto& found : parameters) EXPECT_TRUE(at::equal(found, expected[0])) << victim << " in step " << step;
  }
}

}  // namespace
}  // namespace rehearse::test

int main(int argc, char** argv) {
  if (const auto exit_code = rehearse::test::run_as_rank(argc, argv)) return *exit_code;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
