// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "graph/pt2/json_field.h"

namespace rehearse::graph {

// Readers for the enums and small structs of torch.export's schema (torch/_export/serde/schema.py, version 8).
c10::ScalarType read_dtype(const Field& field);
c10::Layout read_layout(const Field& field);
c10::MemoryFormat read_memory_format(const Field& field);
c10::Device read_device(const Field& field);
SymInt read_sym_int(const Field& field);
TensorMeta read_tensor_meta(const Field& field);

// {"as_expr": {"expr_str": ...}} or {"as_int"|"as_float"|"as_bool": ...}.
SymScalarMeta read_sym_scalar(const Field& field, SymScalarMeta::Kind kind);

// The number of bytes, counted from the beginning of its storage, that the tensor needs. Sizes, strides and offset must
// not be negative. Nothing if one of them is symbolic; the largest number if 63 bits are too few.
std::optional<std::int64_t> bytes_reached(const TensorMeta& tensor);

}  // namespace rehearse::graph
