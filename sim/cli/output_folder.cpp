// SPDX-License-Identifier: BSD-3-Clause
#include "output_folder.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "console.h"

namespace rehearse::cli {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view what, const std::string& why) {
  throw UsageError(
      fmt::format("{}: cannot be {}: {}; --output=DIR or the scenario's [output] directory names another "
                  "folder",
                  path.string(), what, why));
}

}  // namespace

OutputFolder::OutputFolder(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) refuse(folder_, "made", error.message());
  for (const auto& file : {log(), report(), json(), trace()}) {
    std::filesystem::remove(file, error);
    if (error) refuse(file, "removed", error.message());
  }
}

void remove_seed_folder(const std::filesystem::path& folder) noexcept {
  std::error_code ignored;
  for (const char* file : {"run.rlog", "report.txt", "report.json", "trace.json", "output.txt"}) {
    std::filesystem::remove(folder / file, ignored);
  }
  std::filesystem::remove(folder, ignored);
}

void prepare_sweep_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) refuse(folder, "made", error.message());
  constexpr std::string_view kPrefix = "seed-";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    const bool is_seed = name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
                         name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
    if (is_seed) remove_seed_folder(entry.path());
  }
  if (error) refuse(folder, "read", error.message());
}

void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write) {
  std::ofstream out(file, std::ios::binary);
  write(out);
  out.close();
  if (!out) refuse(file, "written", std::strerror(errno));
}

}  // namespace rehearse::cli
