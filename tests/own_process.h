// SPDX-License-Identifier: BSD-3-Clause
// Starts a test's executable again, for code that must run in another process than the test.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rehearse::test {

// A folder for the running test. Its destructor removes the folder.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

// The text of a file; empty if the file does not exist.
std::string text_of(const std::filesystem::path& file);

// Starts this executable with these arguments, and with `environment` ("NAME=value") before this process's own
// environment. Its output goes to the file `output`. The caller must wait for the process.
pid_t start_own_process(std::vector<std::string> arguments, std::vector<std::string> environment,
                        const std::filesystem::path& output);

// A port of 127.0.0.1 with no listener. This process keeps the port until it ends, so that nobody who asks for any free
// port gets it. A store of Rehearse can listen there, because it allows the reuse of addresses.
int free_port();

// Call this in a process that start_own_process() started. If the test is killed, the process ends, too.
void end_with_the_test();

}  // namespace rehearse::test
