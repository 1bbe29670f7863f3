// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/graph/metadata.h>
#include <rehearse/graph/text.h>

namespace rehearse::graph {

// The nesting limit for values in the text form. It is larger than kMaxNesting, because the text form of metadata adds
// dicts around and inside the lists of a value.
inline constexpr int kMaxTextNesting = 2 * kMaxNesting;

// Converts metadata to dicts of arguments, so that the grammar of arguments serves metadata, too. Leaves out fields
// with default values, except dtype, sizes, strides and the texts of an origin. Always leaves out
// Metadata::brings_history and history_from, and Origin::asked_from.
Dict to_dict(const TensorMeta& tensor);
Dict to_dict(const Metadata& meta, Origins origins = Origins::With);

// The reverse. Throws std::invalid_argument that names the bad key, and GraphError like ValueMeta.
TensorMeta tensor_from(const Dict& dict);
Metadata metadata_from(const Dict& dict);

}  // namespace rehearse::graph
