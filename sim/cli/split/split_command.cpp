// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse/graph/text.h>
#include <rehearse_internal/job/spelling.h>
#include <rehearse_internal/sim/input_file.h>

#include "cli/grammar/arguments.h"
#include "cli/grammar/usage_error.h"
#include "cli/split/pieces.h"
#include "cli/terminal/console.h"

// CMake tells the linker to require this symbol; otherwise the linker would leave this file out.
extern "C" {
extern const int rehearse_split_command;
const int rehearse_split_command = 1;
}

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

// Reads the graph of an exported model, without its data. `file`: an archive of torch.export, or the model.json of such
// an archive. `model`: one of the archive's models; empty: the only one. Throws sim::InputError if the file cannot be
// read, and UsageError if it is of another kind or has no such model. Both errors name the file.
graph::ExportedProgram read_model_file(const std::string& file, const std::string& model) {
  const auto bytes = sim::read_input(
      file, "model.json", [](std::string_view begin) { return looks_like_json(begin) ? kJsonBytesMost : 0; });
  try {
    return read(file, model, bytes);
  } catch (const graph::GraphError& error) {
    refuse_file(file, error.what());
  }
}

constexpr double kCapDefault = 25, kFirstCapDefault = 1;  // MiB; DDP's values

// `name`: Arguments::rules.
parallel::CountingRules counting_rules(std::string_view name) {
  if (name == "pytorch") return parallel::CountingRules::pytorch();
  if (name == "ddp") return parallel::CountingRules::ddp();
  return {};
}

// Drops fractions of a byte, as DDP does.
std::int64_t bytes_of(double mebibytes) { return static_cast<std::int64_t>(mebibytes * (1 << 20)); }

parallel::BucketSplitterOptions options_of(const Arguments& arguments) {
  const double cap = arguments.bucket_cap.value_or(kCapDefault);
  const double first = arguments.first_bucket_cap.value_or(std::min(cap, kFirstCapDefault));
  if (first > cap) {
    refuse(name_of(arguments.self), find_command("split"),
           fmt::format("--first-bucket-cap ({:g}) is larger than --bucket-cap ({:g})", first, cap));
  }
  return {bytes_of(cap), bytes_of(first), counting_rules(arguments.rules)};
}

const Piece& piece_called(const std::string& name, const ModelSplit& split, const Arguments& arguments) {
  std::vector<std::string> names;
  for (const auto& piece : split.pieces) {
    if (piece.name == name) return piece;
    names.push_back(piece.name);
  }
  refuse(name_of(arguments.self), find_command("split"),
         fmt::format("there is no piece \"{}\"{}; this model has {}", name, did_you_mean(name, names),
                     fmt::join(names, ", ")));
}

ModelSplit split_file(const Arguments& arguments) {
  const auto options = options_of(arguments);
  auto program = read_model_file(arguments.operand, arguments.model);
  try {
    return split_model(std::move(program), options, arguments.rules);
  } catch (const graph::GraphError& error) {
    throw UsageError(fmt::format("{}: {}", arguments.operand, error.what()));
  } catch (const c10::ValueError& error) {
    throw UsageError(fmt::format("{}: {}", arguments.operand, error.what_without_backtrace()));
  }
}

std::string printed(const ModelSplit& split, const Arguments& arguments) {
  if (arguments.json) return as_json(split, arguments.operand);
  if (!arguments.text_of.empty()) return graph::to_text(*piece_called(arguments.text_of, split, arguments).module);
  if (!arguments.dot_of.empty()) {
    const auto& piece = piece_called(arguments.dot_of, split, arguments);
    return graph::to_dot(piece.module->graph(), piece.name);
  }
  return as_text(split, arguments.operand);
}

int split(const Arguments& arguments, Console& console) {
  return console.conclude(printed(split_file(arguments), arguments), 0);
}

const RegisteredCommand registered("split", &split);

}  // namespace

}  // namespace rehearse::cli
