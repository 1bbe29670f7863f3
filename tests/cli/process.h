// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rehearse::test {

struct Finished {
  int exit_code = -1;  // negative: the signal that ended it
  std::string out, err;
};

// Runs `program` to its end, in `folder`, with argv[0] = "job". `environment` adds variables, as "NAME=value".
Finished run_process(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                     const std::filesystem::path& folder, const std::vector<std::string>& environment = {});

// Runs the program, waits until it has printed `ready`, and sends `signal` to the program's process group, as a
// terminal's Ctrl-C does. If `times` is 2, sends the signal again after the program has printed something about the
// first signal. Waits for the end.
Finished run_and_signal(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                        const std::filesystem::path& folder, const std::string& ready, int signal, int times = 1);

// Runs the program, waits until it has printed `ready`, calls `act`, and waits for the end.
Finished run_and_act(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                     const std::filesystem::path& folder, const std::string& ready,
                     const std::function<void(pid_t process)>& act, const std::vector<std::string>& environment = {});

// Runs the program on a terminal of 80 columns. `out` holds everything that the terminal got, with line ends as \r\n.
Finished run_on_terminal(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                         const std::filesystem::path& folder, const std::vector<std::string>& environment = {});

// An empty folder that belongs to the running test.
std::filesystem::path fresh_folder();

std::string read_file(const std::filesystem::path& file);
void write_file(const std::filesystem::path& file, std::string_view text);

}  // namespace rehearse::test
