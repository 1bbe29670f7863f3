// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/split/pieces.h"

namespace rehearse::cli {
namespace {

using Kind = PieceValue::Kind;

std::string mebibytes(std::int64_t bytes) { return fmt::format("{:.4g} MiB", static_cast<double>(bytes) / (1 << 20)); }

std::string symbols_line(const ModelSplit& split) {
  std::vector<std::string> symbols;
  for (const auto& [name, range] : split.program.ranges) {
    const auto from = range.min ? fmt::format(" from {}", *range.min) : "";
    const auto to = range.max ? fmt::format(" to {}", *range.max) : "";
    symbols.push_back(name + from + to);
  }
  return symbols.empty() ? "" : fmt::format("symbols: {}\n", fmt::join(symbols, ", "));
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string values_lines(std::string_view title, const std::vector<const PieceValue*>& values) {
  std::size_t width = 0;
  for (const auto* value : values) width = std::max(width, value->name.size());
  std::string text;
  for (const auto* value : values) {
    const bool is_said = value->kind == Kind::Value || value->kind == Kind::Symbol;
    const auto kind = is_said ? "" : fmt::format(" ({})", to_string(value->kind));
    text += fmt::format("  {:<3}  {:<{}}  {}{}\n", title, value->name, width, type_of(*value), kind);
    title = "";
  }
  return text;
}

std::vector<const PieceValue*> without_parameters(const std::vector<PieceValue>& values) {
  std::vector<const PieceValue*> result;
  for (const auto& value : values) {
    if (value.kind != Kind::Parameter) result.push_back(&value);
  }
  return result;
}

std::string piece_text(const ModelSplit& split, const Piece& piece) {
  const auto& bucket = split.cut.buckets[piece.bucket];
  const auto parameters =
      std::ranges::count_if(piece.inputs, [](const PieceValue& value) { return value.kind == Kind::Parameter; });
  std::vector<const PieceValue*> outputs;
  for (const auto& value : piece.outputs) outputs.push_back(&value);
  return fmt::format("\n{}: bucket {}, {}, {}, {} bytes to reduce\n", piece.name, piece.bucket,
                     counted(bucket.nodes.size(), "node"), counted(static_cast<std::size_t>(parameters), "parameter"),
                     bucket.bytes) +
         values_lines("in", without_parameters(piece.inputs)) + values_lines("out", outputs);
}

}  // namespace

std::string as_text(const ModelSplit& split, const std::string& file) {
  const auto version = split.program.torch_version.empty() ? "" : ", exported by torch " + split.program.torch_version;
  std::string text = fmt::format("{}: a graph of {} nodes{}\n", file, split.program.module->graph().size(), version);
  text += symbols_line(split);
  text += fmt::format("{} at a cap of {} ({} at the graph's end), counted by the rules \"{}\"\n\n",
                      counted(split.cut.buckets.size(), "bucket"), mebibytes(split.options.bucket_bytes_cap),
                      mebibytes(split.options.first_bucket_bytes_cap), split.rules);
  text += parallel::bucket_table(split.cut.buckets);
  for (const auto& warning : split.cut.warnings) text += fmt::format("warning: {}\n", warning);
  text += "\npieces, in the order in which they are called; the last bucket is reduced first:\n";
  for (const auto& piece : split.pieces) text += piece_text(split, piece);
  return text;
}

}  // namespace rehearse::cli
