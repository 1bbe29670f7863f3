// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <rehearse/graph/exported_program.h>
#include <rehearse/parallel/bucket_splitter.h>

// The data that `rehearse split` prints: the pieces of a model.
namespace rehearse::cli {

// An input or an output of a piece.
struct PieceValue {
  // Symbol: a size that is passed separately. Value: a result of a piece.
  enum class Kind { Parameter, Buffer, Constant, Input, Symbol, Value };
  std::string name;  // qualified name of a parameter, buffer or constant; otherwise the node's name
  Kind kind = Kind::Value;
  std::shared_ptr<const graph::ValueMeta> meta;  // null: unknown
};

std::string_view to_string(PieceValue::Kind kind);

// For example "float32[4, s0]" or "int s0"; "unknown" if nothing is known.
std::string type_of(const PieceValue& value);

struct Piece {
  std::string name;        // in the module of pieces; "forward" if there is only one bucket
  std::size_t bucket = 0;  // the bucket whose gradients its backward fills
  std::vector<PieceValue> inputs, outputs;
  std::shared_ptr<graph::GraphModule> module;
};

struct ModelSplit {
  graph::ExportedProgram program;
  parallel::BucketSplitterOptions options;
  std::string rules;          // name of the counting rules
  parallel::BucketSplit cut;  // names parameters by their qualified names
  std::vector<Piece> pieces;  // in the order of their calls
};

// Throws what parallel::split_by_buckets() throws.
ModelSplit split_model(graph::ExportedProgram program, const parallel::BucketSplitterOptions& options,
                       const std::string& rules);

std::string as_text(const ModelSplit& split, const std::string& file);
std::string as_json(const ModelSplit& split, const std::string& file);

}  // namespace rehearse::cli
