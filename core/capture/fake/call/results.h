// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <c10/core/WrapDimMinimal.h>

#include "capture/fake/call/operator_call.h"
#include "capture/fake/call/result_layout.h"

namespace rehearse::capture {

inline TensorSpec result(const Call& call, Layout layout, c10::ScalarType dtype) {
  TensorSpec spec;
  spec.sizes = std::move(layout.sizes);
  spec.strides = std::move(layout.strides);
  spec.dtype = dtype;
  spec.device = device_of(call);
  return spec;
}

inline TensorSpec result(const Call& call, SymInts sizes, c10::ScalarType dtype,
                         c10::MemoryFormat format = c10::MemoryFormat::Contiguous) {
  SymInts strides = strides_of(sizes, format);
  return result(call, Layout{std::move(sizes), std::move(strides)}, dtype);
}

inline TensorSpec result_like(const Call& call, const at::Tensor& like, c10::ScalarType dtype,
                              c10::MemoryFormat format = c10::MemoryFormat::Preserve) {
  return result(call, Layout{like.sym_sizes().vec(), strides_like(like, format)}, dtype);
}

inline TensorSpec view_of(const at::Tensor& of, SymInts sizes, SymInts strides, c10::SymInt storage_offset) {
  TensorSpec spec;
  spec.sizes = std::move(sizes);
  spec.strides = std::move(strides);
  spec.storage_offset = std::move(storage_offset);
  spec.dtype = of.scalar_type();
  spec.device = of.device();
  spec.is_conj = of.is_conj();
  spec.is_neg = of.is_neg();
  return spec;
}

inline TensorSpec view_of(const at::Tensor& of, SymInts sizes, SymInts strides) {
  return view_of(of, std::move(sizes), std::move(strides), of.sym_storage_offset());
}

inline c10::MemoryFormat format_or(const Call& call, std::size_t i, c10::MemoryFormat other) {
  return call.arguments[i].isNone() ? other : call.arguments[i].toMemoryFormat();
}

// The index of dimension `dim`; a negative `dim` counts from the end. A 0-dimensional tensor counts as having one
// dimension.
inline std::size_t wrap(std::int64_t dim, std::int64_t dimensions) {
  return static_cast<std::size_t>(c10::maybe_wrap_dim(dim, dimensions));
}

// Like wrap(), for operators that refuse 0-dimensional tensors.
inline std::size_t wrap_existing(std::int64_t dim, std::int64_t dimensions) {
  return static_cast<std::size_t>(c10::maybe_wrap_dim(dim, dimensions, /*wrap_scalar=*/false));
}

}  // namespace rehearse::capture
