// SPDX-License-Identifier: BSD-3-Clause
// A test's executable, started again as another process: for what must not share memory with the test.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rehearse::test {

// A folder of the running test's own that goes with its owner.
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

// Empty where there is no such file.
std::string text_of(const std::filesystem::path& file);

// Starts it with these arguments, and "NAME=value" before the environment of this one; what it prints goes into the
// file `output`. The caller waits for it.
pid_t start_own_process(std::vector<std::string> arguments, std::vector<std::string> environment,
                        const std::filesystem::path& output);

// In such a process: a test that is killed leaves none behind.
void end_with_the_test();

}  // namespace rehearse::test
