// SPDX-License-Identifier: BSD-3-Clause
#include "cli/split/model_file.h"

#include <string_view>

#include <fmt/format.h>
#include <rehearse_internal/sim/input_file.h>

#include "cli/grammar/usage_error.h"

namespace rehearse::cli {
namespace {

constexpr std::size_t kJsonBytesMost = std::size_t{256} << 20;

bool is_zip(std::string_view bytes) { return bytes.starts_with("PK"); }
bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }
bool looks_like_json(std::string_view bytes) { return bytes.starts_with('{'); }

// Errors about a whole archive already begin with its path.
[[noreturn]] void refuse_file(const std::string& file, std::string_view what) {
  throw UsageError(what.starts_with(file) ? std::string(what) : fmt::format("{}: {}", file, what));
}

graph::ExportedProgram read(const std::string& file, const std::string& model, const std::string& bytes) {
  if (is_zip(bytes)) return graph::load_pt2_graph(file, model);
  if (is_gzip(bytes)) refuse_file(file, "is compressed; gunzip it first");
  if (!looks_like_json(bytes))
    refuse_file(file, "is neither an archive of torch.export (.pt2) nor the model.json of one");
  if (!model.empty()) refuse_file(file, "is one model; --model is for archives that have several");
  return graph::parse_exported_program(bytes);
}

}  // namespace

graph::ExportedProgram read_model_file(const std::string& file, const std::string& model) {
  const auto bytes = sim::read_input(
      file, "model.json", [](std::string_view begin) { return looks_like_json(begin) ? kJsonBytesMost : 0; });
  try {
    return read(file, model, bytes);
  } catch (const graph::GraphError& error) {
    refuse_file(file, error.what());
  }
}

}  // namespace rehearse::cli
