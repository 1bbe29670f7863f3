// SPDX-License-Identifier: BSD-3-Clause
#include "compile/partitions/graph_dump.h"

#include <cctype>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include <rehearse/compile/errors.h>
#include <rehearse/graph/text.h>
#include <rehearse_internal/exec/native_scope.h>
#include <rehearse_internal/exec/this_rank.h>

namespace rehearse::compiler {
namespace {

// A function's name may contain any characters.
std::string as_file_name(std::string text) {
  for (char& each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if (std::isalnum(byte) == 0 && each != '_' && each != '-') each = '_';
  }
  return text;
}

}  // namespace

void GraphDump::write(const std::string& graph, const graph::GraphModule& module) {
  if (options_.dump_folder.empty()) return;
  const std::string rank = exec::this_rank::is_fiber() ? fmt::format(".rank{}", exec::this_rank::rank()) : "";
  const std::filesystem::path file =
      std::filesystem::path(options_.dump_folder) /
      fmt::format("{}{}.{}.{}.txt", as_file_name(options_.name), rank, ++written_, graph);
  const std::string text = graph::to_text(module);
  const exec::NativeScope native;  // the real disk, not that of the simulated job
  std::error_code error;
  std::filesystem::create_directories(options_.dump_folder, error);
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) {
    throw CompileError("CompileOptions::dump_folder: cannot write " + file.string() +
                       ". The folder must be one that can be made and written to");
  }
}

}  // namespace rehearse::compiler
