// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/graph/metadata.h>
#include <rehearse/graph/text.h>

namespace rehearse::graph {

// How deep values may be nested in the text: what metadata knows about a value stands in dicts of its own.
inline constexpr int kMaxTextNesting = 2 * kMaxNesting;

// Metadata as dicts of arguments, so that one grammar serves both; what has its default value is left out.
Dict to_dict(const TensorMeta& tensor);
Dict to_dict(const Metadata& meta, Origins origins = Origins::With);

// The reverse. Throws std::invalid_argument that names the key at fault, and GraphError as ValueMeta does.
TensorMeta tensor_from(const Dict& dict);
Metadata metadata_from(const Dict& dict);

}  // namespace rehearse::graph
