// SPDX-License-Identifier: BSD-3-Clause
#include <ostream>
#include <string>

#include <rehearse_internal/sim/input_file.h>
#include <rehearse_internal/sim/run_log.h>

#include "output_file.h"

namespace rehearse::sim {

void write_run_log(const std::filesystem::path& file, const RunLog& log) {
  const std::string bytes = run_log_bytes(log);
  try {
    write_file(file, [&](std::ostream& out) { out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())); });
  } catch (const OutputError& error) {
    throw RunLogError(error.what());
  }
}

RunLog read_run_log(const std::filesystem::path& file) {
  try {
    return parse_run_log(read_input(file, "run log", run_log_bytes_most), file.string());
  } catch (const InputError& error) {
    throw RunLogError(error.what());
  }
}

}  // namespace rehearse::sim
