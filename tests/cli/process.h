// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rehearse::test {

// What a command left behind.
struct Finished {
  int exit_code = -1;  // negative: ended by that signal
  std::string out, err;
};

// Runs `program` with argv[0] = "job" in `folder`, to its end. `environment` are additions, "NAME=value".
Finished run_process(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                     const std::filesystem::path& folder, const std::vector<std::string>& environment = {});

// Runs it, waits until it has printed `ready`, sends `signal` to it and to the processes that it started, as
// a terminal's Ctrl-C does (`times` 2: once more when it has said something about the first), and waits for
// the end.
Finished run_and_signal(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                        const std::filesystem::path& folder, const std::string& ready, int signal, int times = 1);

// Runs it, waits until it has printed `ready`, has `act` do what it does beside it, and waits for the end.
Finished run_and_act(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                     const std::filesystem::path& folder, const std::string& ready,
                     const std::function<void(pid_t process)>& act, const std::vector<std::string>& environment = {});

// The same on a terminal of 80 columns: everything that is written to it comes back as `out`, line ends as
// \r\n.
Finished run_on_terminal(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                         const std::filesystem::path& folder, const std::vector<std::string>& environment = {});

// A port of the loopback that nobody listens at.
std::string free_port();

// An empty folder of the running test's own.
std::filesystem::path fresh_folder();

std::string read_file(const std::filesystem::path& file);
void write_file(const std::filesystem::path& file, std::string_view text);

}  // namespace rehearse::test
