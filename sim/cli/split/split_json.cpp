// SPDX-License-Identifier: BSD-3-Clause
#include <c10/core/ScalarType.h>

#include "cli/split/pieces.h"
#include "report/writers/json.h"

namespace rehearse::cli {
namespace {

using sim::Json;

Json sizes_of(const graph::TensorMeta& tensor) {
  auto sizes = Json::array();
  for (const auto& size : tensor.sizes) {
    if (size.is_symbolic()) {
      sizes.push_back(size.expression().text());
    } else {
      sizes.push_back(size.number());
    }
  }
  return sizes;
}

Json value_json(const PieceValue& value) {
  Json json = {{"name", value.name}, {"kind", to_string(value.kind)}, {"type", type_of(value)}};
  if (!value.meta) return json;
  if (const auto* tensor = value.meta->tensor()) {
    json["dtype"] = c10::getDtypeNames(tensor->dtype).first;
    json["sizes"] = sizes_of(*tensor);
  }
  if (const auto* scalar = value.meta->scalar()) json["expression"] = scalar->expression.text();
  return json;
}

Json values_json(const std::vector<PieceValue>& values) {
  auto json = Json::array();
  for (const auto& value : values) json.push_back(value_json(value));
  return json;
}

Json ranges_json(const ModelSplit& split) {
  auto json = Json::object();
  for (const auto& [name, range] : split.program.ranges) {
    json[name] = Json::object();
    if (range.min) json[name]["min"] = *range.min;
    if (range.max) json[name]["max"] = *range.max;
  }
  return json;
}

Json bucket_json(const parallel::ForwardBucket& bucket) {
  auto nodes = Json::array();
  for (const graph::Node* node : bucket.nodes) nodes.push_back(node->name());
  return {{"bytes", bucket.bytes},
          {"parameters", bucket.parameters},
          {"extended_ops", bucket.extended_ops},
          {"bytes_before_extension", bucket.bytes_before_extension},
          {"nodes", nodes}};
}

}  // namespace

std::string as_json(const ModelSplit& split, const std::string& file) {
  auto buckets = Json::array(), pieces = Json::array();
  for (const auto& bucket : split.cut.buckets) buckets.push_back(bucket_json(bucket));
  for (const auto& piece : split.pieces) {
    pieces.push_back({{"name", piece.name},
                      {"bucket", piece.bucket},
                      {"nodes", split.cut.buckets[piece.bucket].nodes.size()},
                      {"bytes", split.cut.buckets[piece.bucket].bytes},
                      {"inputs", values_json(piece.inputs)},
                      {"outputs", values_json(piece.outputs)}});
  }
  Json json = {{"rehearse_split", 1},
               {"model", file},
               {"torch_version", split.program.torch_version},
               {"nodes", split.program.module->graph().size()},
               {"symbols", ranges_json(split)},
               {"bucket_bytes_cap", split.options.bucket_bytes_cap},
               {"first_bucket_bytes_cap", split.options.first_bucket_bytes_cap},
               {"rules", split.rules},
               {"buckets", buckets},
               {"warnings", split.cut.warnings},
               {"pieces", pieces}};
  return sim::json_text(std::move(json), 2) + "\n";
}

}  // namespace rehearse::cli
