// SPDX-License-Identifier: BSD-3-Clause
#include "gloo_processes.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include <sys/wait.h>

#include <gloo/transport/device.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "own_process.h"

namespace rehearse::parity {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "--gloo-rank";
constexpr std::chrono::seconds kTimeout{30};  // of one collective: a dead rank must not hold up the others for long

void save(const fs::path& file, const std::vector<Result>& results) {
  c10::List<std::string> refusals;
  c10::List<std::vector<at::Tensor>> values;
  for (const Result& result : results) {
    refusals.push_back(result.refusal);
    values.push_back(result.values);
  }
  const auto bytes = torch::jit::pickle_save(c10::ivalue::Tuple::create({refusals, values}));
  std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::vector<Result> load(const fs::path& file) {
  const std::string text = test::text_of(file);
  const auto parts = torch::jit::pickle_load({text.begin(), text.end()}).toTuple();
  const auto refusals = parts->elements()[0].toList();
  const auto values = parts->elements()[1].toList();
  std::vector<Result> results;
  for (std::size_t i = 0; i < refusals.size(); ++i) {
    results.push_back({refusals.get(i).toStringRef(), values.get(i).toTensorVector()});
  }
  return results;
}

ProcessGroup make_gloo_group(const fs::path& folder, int rank, int ranks) {
  const auto store = c10::make_intrusive<c10d::FileStore>((folder / "store").string(), ranks);
  const auto options = c10d::ProcessGroupGloo::Options::create(kTimeout);
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  c10::intrusive_ptr<c10d::Backend> gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, ranks, options);
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, ranks);
  group->setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::GLOO, gloo);
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  group->setGroupName("world");
  c10d::register_process_group("world", group);  // functional collectives look it up
  return group;
}

}  // namespace

std::vector<std::vector<Result>> run_on_gloo(const std::string& suite, int ranks,
                                             const std::vector<std::string>& more_environment) {
  const test::TemporaryFolder folder;
  const auto output = [&](int rank) { return folder.path() / ("output" + std::to_string(rank)); };
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(test::start_own_process(
        {kMark, suite, std::to_string(rank), std::to_string(ranks), folder.path()}, more_environment, output(rank)));
  }
  std::string problems;
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    waitpid(children[static_cast<std::size_t>(rank)], &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      problems += "rank " + std::to_string(rank) + " ended with status " + std::to_string(status) + ":\n" +
                  test::text_of(output(rank));
    }
  }
  if (!problems.empty()) throw std::runtime_error(problems);
  std::vector<std::vector<Result>> results;
  for (int rank = 0; rank < ranks; ++rank) results.push_back(load(folder.path() / std::to_string(rank)));
  return results;
}

std::optional<int> run_as_gloo_rank(int argc, char** argv) {
  if (argc != 6 || std::string(argv[1]) != kMark) return std::nullopt;
  test::end_with_the_test();
  const int rank = std::atoi(argv[3]);
  const fs::path folder = argv[5];
  try {
    const auto group = make_gloo_group(folder, rank, std::atoi(argv[4]));
    save(folder / std::to_string(rank), run_cases(cases_of(argv[2]), group));
    group->barrier()->wait();  // no rank may close its connections while another still uses them
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}

}  // namespace rehearse::parity
