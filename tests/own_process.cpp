// SPDX-License-Identifier: BSD-3-Clause
#include "own_process.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include <arpa/inet.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rehearse::test {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  return pointers;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = std::filesystem::temp_directory_path() / "rehearse_test_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder can be made");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

pid_t start_own_process(std::vector<std::string> arguments, std::vector<std::string> environment,
                        const std::filesystem::path& output) {
  arguments.insert(arguments.begin(), "process of a test");
  auto argv = pointers_to(arguments);
  argv.push_back(nullptr);
  auto variables = pointers_to(environment);
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = -1;
  const int failed = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::system_error(failed, std::generic_category(), "a test's process cannot be started");
  return child;
}

int free_port() {
  const int reserves = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);  // stays open, and never listens
  constexpr int kOn = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (setsockopt(reserves, SOL_SOCKET, SO_REUSEADDR, &kOn, sizeof kOn) != 0 ||
      bind(reserves, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(reserves, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("no port is free");
  return ntohs(address.sin_port);
}

void end_with_the_test() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace rehearse::test
