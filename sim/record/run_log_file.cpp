// SPDX-License-Identifier: BSD-3-Clause
#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include <rehearse/sim/input_file.h>
#include <rehearse/sim/run_log.h>

namespace rehearse::sim {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, const char* what, int error) {
  throw RunLogError(fmt::format("{}: {}: {}", file.string(), what, std::generic_category().message(error)));
}

}  // namespace

void write_run_log(const std::filesystem::path& file, const RunLog& log) {
  // In the same folder, so that the rename stays within a file system; with the process in the name, so that
  // two processes that write the same log do not mix.
  const std::filesystem::path partial = file.string() + fmt::format(".{}.partial", ::getpid());
  const std::string bytes = run_log_bytes(log);
  errno = 0;
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  if (!out) fail(file, "cannot be written", errno);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  const int write_error = out ? 0 : errno;
  std::error_code rename_error;
  if (write_error == 0) std::filesystem::rename(partial, file, rename_error);
  if (write_error == 0 && !rename_error) return;
  std::error_code ignored;
  std::filesystem::remove(partial, ignored);
  fail(file, "cannot be written", write_error != 0 ? write_error : rename_error.value());
}

RunLog read_run_log(const std::filesystem::path& file) {
  try {
    return parse_run_log(read_input(file, "run log", run_log_bytes_most), file.string());
  } catch (const InputError& error) {
    throw RunLogError(error.what());
  }
}

}  // namespace rehearse::sim
