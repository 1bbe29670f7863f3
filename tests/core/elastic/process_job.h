// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Jobs on real processes, with c10d's gloo and TCPStore: the test's program starts itself once for each rank.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <any>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gloo/transport/device.h>
#include <spawn.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <rehearse/comm/object_collectives.h>
#include <rehearse/job/rank_context.h>
#include <rehearse_internal/exec/machine_time.h>

namespace rehearse::test {

// A rank that kills itself in its first incarnation. Negative numbers: never.
struct Kill {
  int rank = -1;
  int step = -1;  // when it reports the beginning of this step
  int call = -1;  // when gloo has begun this call; counts the calls on all groups, from 1
};

struct Who {
  std::string job;
  int rank = 0;
  int ranks = 0;
  int incarnation = 0;
  int port = 0;
  Kill kill;

  bool dies() const { return incarnation == 0 && kill.rank == rank; }
};

inline void kill_own_process() { kill(getpid(), SIGKILL); }

// Gloo that calls a function after it has begun a collective. The function may kill the process in the middle of the
// collective. Only the kinds of collectives that these jobs use are covered.
class MortalGloo final : public c10d::ProcessGroupGloo {
 public:
  using c10d::ProcessGroupGloo::ProcessGroupGloo;
  void on_begun(std::function<void()> on_begun) { on_begun_ = std::move(on_begun); }

  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    return begun(ProcessGroupGloo::broadcast(tensors, options));
  }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    return begun(ProcessGroupGloo::allreduce(tensors, options));
  }
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& outputs,
                                           std::vector<at::Tensor>& inputs,
                                           const c10d::AllgatherOptions& options) override {
    return begun(ProcessGroupGloo::allgather(outputs, inputs, options));
  }
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& output, at::Tensor& input,
                                                 const c10d::AllgatherOptions& options) override {
    return begun(ProcessGroupGloo::_allgather_base(output, input, options));
  }
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                      const c10d::ReduceScatterOptions& options) override {
    return begun(ProcessGroupGloo::_reduce_scatter_base(output, input, options));
  }
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions& options) override {
    return begun(ProcessGroupGloo::barrier(options));
  }

 private:
  c10::intrusive_ptr<c10d::Work> begun(c10::intrusive_ptr<c10d::Work> work) {
    on_begun_();
    return work;
  }

  std::function<void()> on_begun_;
};

// A context that has only what these jobs need.
class BareContext final : public RankContext {
 public:
  explicit BareContext(Who who) : who_(std::move(who)), generator_(at::detail::getDefaultCPUGenerator()) {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(who_.port);
    options.waitWorkers = false;
    store_ = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  }

  int rank() const noexcept override { return who_.rank; }
  int size() const noexcept override { return who_.ranks; }
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
    const auto gloo = c10::make_intrusive<MortalGloo>(own, rank, size, options);
    gloo->on_begun([this] {
      if (++calls_ == who_.kill.call && who_.dies()) kill_own_process();
    });
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
  // Blocks until all ranks have called this function.
  void wait_for_all() const {
    if (store_->add("started", 1) == who_.ranks) store_->set("all started", "");
    store_->wait({"all started"});
  }
  int calls() const noexcept { return calls_; }  // on all groups
  const at::Tensor& last_result() const noexcept { return last_result_; }

  void progress(std::int64_t done, std::int64_t, std::string_view) override {
    if (done == who_.kill.step && who_.dies()) kill_own_process();
  }

 protected:
  std::shared_ptr<void> begin_label(std::string_view) override { return nullptr; }
  void count_check(std::string_view) override {}
  void keep_result(std::string_view, at::Tensor value) override { last_result_ = std::move(value); }
  std::any& local_slot(const void* key) override { return slots_[key]; }

 private:
  const Who who_;
  c10::intrusive_ptr<c10d::Store> store_;
  mutable at::Generator generator_;
  Group none_;
  std::map<const void*, std::any> slots_;
  int calls_ = 0;
  at::Tensor last_result_;
};

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Runs one rank of a job. Returns the tensor that the test compares. The tensor is undefined if the other ranks had
// ended before this rank was back.
using Job = at::Tensor (*)(BareContext& context);

constexpr const char* kRankMark = "--elastic-rank";

// If this process is a rank, runs that rank and returns the exit code. Otherwise returns nullopt.
inline std::optional<int> run_as_rank(int argc, char** argv, const std::map<std::string, Job>& jobs) {
  if (argc != 11 || std::string_view(argv[1]) != kRankMark) return std::nullopt;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is killed leaves no process behind
  std::signal(SIGPIPE, SIG_IGN);     // as Python does: writing to a peer that is gone is an error of the call
  const auto number = [&](int i) { return std::atoi(argv[i]); };
  try {
    at::set_num_threads(1);
    BareContext context({argv[2], number(3), number(4), number(5), number(6), {number(7), number(8), number(9)}});
    const auto left = jobs.at(argv[2])(context);
    if (!left.defined()) throw std::runtime_error("the others had ended before");
    const auto bytes = comm::to_bytes(left);
    std::ofstream(argv[10], std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}

// Whether the killed process is started again.
enum class Afterwards { StartedAgain, Gone };

class Processes {
 public:
  Processes(std::string job, int ranks) : job_(std::move(job)), ranks_(ranks) {
    std::string name = std::filesystem::temp_directory_path() / "rehearse_elastic_XXXXXX";
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
    std::filesystem::remove_all(folder_, ignored);
  }

  // Returns the result of each rank's job. Undefined: the rank was killed, and was not started again.
  std::vector<at::Tensor> run(const Kill& kill = {}, Afterwards afterwards = Afterwards::StartedAgain) {
    for (int rank = 0; rank < ranks_; ++rank) start({job_, rank, ranks_, 0, store_->getPort(), kill});
    while (!running_.empty()) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, 0);
      const auto ended = running_.extract(pid);
      if (ended.empty()) continue;
      Who who = ended.mapped();
      if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && who.dies()) {
        ++kills_;
        ++who.incarnation;
        if (afterwards == Afterwards::StartedAgain) start(who);
      } else if (status != 0) {
        // Do not wait for the other ranks, which wait for this rank until their calls time out.
        throw std::runtime_error(
            fmt::format("rank {} ended with status {}: {}", who.rank, status, text_of(file(who.rank, "output"))));
      }
    }
    std::vector<at::Tensor> left;
    for (int rank = 0; rank < ranks_; ++rank) {
      const auto bytes = text_of(file(rank, "left"));
      left.push_back(bytes.empty() ? at::Tensor() : comm::from_bytes(bytes).toTensor());
    }
    return left;
  }

  int kills() const noexcept { return kills_; }

 private:
  std::filesystem::path file(int rank, const char* what) const { return folder_ / fmt::format("{}{}", what, rank); }

  void start(const Who& who) {
    std::vector<std::string> words{"elastic rank", kRankMark, who.job};
    for (const int number :
         {who.rank, who.ranks, who.incarnation, who.port, who.kill.rank, who.kill.step, who.kill.call})
      words.push_back(std::to_string(number));
    words.push_back(file(who.rank, "left"));
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

  const std::string job_;
  const int ranks_;
  std::filesystem::path folder_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
  std::map<pid_t, Who> running_;
  int kills_ = 0;
};

}  // namespace rehearse::test
