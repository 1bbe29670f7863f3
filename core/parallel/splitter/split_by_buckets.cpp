// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include <rehearse/parallel/bucket_splitter.h>
#include <rehearse_internal/formatting/name_list.h>

#include "parallel/splitter/extension.h"
#include "parallel/splitter/parameter_uses.h"

namespace rehearse::parallel {
namespace {

using Texts = std::vector<std::string>;

void warn_of_extension(const std::vector<ForwardBucket>& buckets, std::size_t index, Texts& warnings) {
  const Extension extension = extension_of(buckets, index);
  if (extension.nodes == 0) return;
  warnings.push_back(
      extension.bytes
          ? fmt::format("bucket {} was full with {} bytes, but nothing in it was used outside, so it took in {} more "
                        "nodes and {} bytes",
                        index, buckets[index].bytes_before_extension, extension.nodes, *extension.bytes)
          : fmt::format("bucket {} was full with its first node (the cap is 0), but nothing in it was used outside, so "
                        "it took in {} more nodes",
                        index, extension.nodes));
}

bool is_item(const graph::Node& node) {
  return node.op() == graph::Op::CallFunction && node.target() == "_operator.getitem" && node.args().at(0).node();
}

bool only_fetches(const ForwardBucket& bucket) {
  return std::ranges::all_of(bucket.nodes, [](const graph::Node* node) { return node->op() == graph::Op::GetAttr; });
}

void warn_of_no_split(const ForwardBucket& bucket, const BucketSplitterOptions& options, Texts& warnings) {
  if (bucket.parameters.empty()) {
    warnings.push_back("the graph was not split: it uses no parameters that DDP reduces");
  } else if (bucket.bytes == 0) {
    warnings.push_back("the graph was not split: the parameters that it uses have no bytes");
  } else if (bucket.bytes >= options.cap_of(0) && warnings.empty()) {
    warnings.push_back(
        fmt::format("the graph was not split: no bytes of parameters come before the node that fills the "
                    "first bucket ({} of {} bytes)",
                    bucket.bytes, options.cap_of(0)));
  }
}

void warn_of_uncounted(const graph::GraphModule& module, const CountingRules& rules, Texts& warnings) {
  const auto names = ParameterUses::uncounted(module, rules);
  if (names.empty()) return;
  warnings.push_back(
      fmt::format("{} that DDP reduces {} in no bucket ({}): these rules count no parameters in lists, in keyword "
                  "arguments and of methods of results; CountingRules::ddp() does (--rules=ddp)",
                  names.size() == 1 ? "1 parameter" : fmt::format("{} parameters", names.size()),
                  names.size() == 1 ? "is" : "are", some_names(names)));
}

Texts warnings_of(const std::vector<ForwardBucket>& buckets, const BucketSplitterOptions& options) {
  Texts warnings;
  for (std::size_t index = 0; index < buckets.size(); ++index) {
    warn_of_extension(buckets, index, warnings);
    if (buckets.size() > 1 && only_fetches(buckets[index])) {
      warnings.push_back(fmt::format("bucket {} has no piece: it only fetches attributes", index));
    }
  }
  if (buckets.size() == 1) warn_of_no_split(buckets.front(), options, warnings);
  return warnings;
}

}  // namespace

BucketSplit split_by_buckets(const std::shared_ptr<graph::GraphModule>& module, const BucketSplitterOptions& options) {
  if (!module) throw graph::GraphError("", "module", "is null");
  BucketSplit split{assign_buckets(*module, options), module, {}, {}};
  split.warnings = warnings_of(split.buckets, options);
  warn_of_uncounted(*module, options.rules, split.warnings);
  if (!split.was_split()) return split;
  std::unordered_map<const graph::Node*, int> piece_of;
  for (std::size_t index = 0; index < split.buckets.size(); ++index) {
    for (const graph::Node* node : split.buckets[index].nodes) piece_of.emplace(node, static_cast<int>(index));
  }
  const auto piece = [&](const graph::Node& node) {
    const graph::Node* of = &node;
    while (options.keep_items_together && is_item(*of)) of = of->args().at(0).node();
    return of->op() == graph::Op::Placeholder ? piece_of.at(&node) : piece_of.at(of);
  };
  auto cut = graph::split_by(*module, piece, options.order);
  split.module = std::move(cut.module);
  split.pieces = std::move(cut.partitions);
  return split;
}

}  // namespace rehearse::parallel
