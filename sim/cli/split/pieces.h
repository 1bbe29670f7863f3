// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <rehearse/graph/exported_program.h>
#include <rehearse/parallel/bucket_splitter.h>

// What `rehearse split` says about the pieces of a model, as data.
namespace rehearse::cli {

// What goes into a piece, or comes out of it.
struct PieceValue {
  // Symbol: a size that is passed on its own. Value: what another piece computes.
  enum class Kind { Parameter, Buffer, Constant, Input, Symbol, Value };
  std::string name;  // a parameter's, buffer's or constant's qualified name, else the node's
  Kind kind = Kind::Value;
  std::shared_ptr<const graph::ValueMeta> meta;  // null: unknown
};

std::string_view to_string(PieceValue::Kind kind);

// "float32[4, s0]", "int s0"; "unknown" where nothing is known.
std::string type_of(const PieceValue& value);

struct Piece {
  std::string name;        // in the module of pieces; "forward" when there is one piece
  std::size_t bucket = 0;  // whose gradients its backward fills
  std::vector<PieceValue> inputs, outputs;
  std::shared_ptr<graph::GraphModule> module;
};

struct ModelSplit {
  graph::ExportedProgram program;
  parallel::BucketSplitterOptions options;
  std::string rules;          // their name
  parallel::BucketSplit cut;  // parameters under their qualified names
  std::vector<Piece> pieces;  // in the order in which they are called
};

// Throws what parallel::split_by_buckets() throws.
ModelSplit split_model(graph::ExportedProgram program, const parallel::BucketSplitterOptions& options,
                       const std::string& rules);

std::string as_text(const ModelSplit& split, const std::string& file);
std::string as_json(const ModelSplit& split, const std::string& file);

}  // namespace rehearse::cli
