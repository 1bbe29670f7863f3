// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <fmt/format.h>

#include <rehearse/parallel/bucket_splitter.h>

#include "parallel/splitter/extension.h"

namespace rehearse::parallel {

std::string bucket_table(const std::vector<ForwardBucket>& buckets) {
  std::size_t bytes_width = std::string_view("bytes").size();
  for (const auto& bucket : buckets) bytes_width = std::max(bytes_width, fmt::formatted_size("{}", bucket.bytes));
  std::string table = fmt::format("bucket  {:>{}}  nodes  parameters\n", "bytes", bytes_width);
  for (std::size_t index = 0; index < buckets.size(); ++index) {
    const ForwardBucket& bucket = buckets[index];
    table += fmt::format("{:>6}  {:>{}}  {:>5}  {}\n", index, bucket.bytes, bytes_width, bucket.nodes.size(),
                         bucket.parameters.empty() ? "(none)" : bucket.parameters.front());
    const std::size_t indent = 6 + 2 + bytes_width + 2 + 5 + 2;
    for (std::size_t k = 1; k < bucket.parameters.size(); ++k) {
      table += fmt::format("{:{}}{}\n", "", indent, bucket.parameters[k]);
    }
    if (const Extension extension = extension_of(buckets, index); extension.nodes > 0) {
      const std::string bytes = extension.bytes ? fmt::format(" and {} bytes", *extension.bytes) : "";
      table += fmt::format("{:{}}extended by {} nodes{}: until then nothing in it was used outside\n", "", indent,
                           extension.nodes, bytes);
    }
  }
  return table;
}

}  // namespace rehearse::parallel
