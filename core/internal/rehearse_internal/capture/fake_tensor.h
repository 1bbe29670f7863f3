// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <c10/core/SymInt.h>

#include <rehearse/graph/metadata.h>

// Tensors without data. A fake tensor has sizes (numbers or symbols), strides, dtype and device, and takes part in
// LibTorch's autograd. A fake and its aliases share one storage, which has no memory. Operators on fakes work while a
// FakeMode is on (fake_mode.h). Every access to the data of a fake throws.
namespace rehearse::capture {

// The properties of a tensor except its data.
struct TensorSpec {
  std::vector<c10::SymInt> sizes;
  std::vector<c10::SymInt> strides;  // in elements; as many as sizes
  c10::SymInt storage_offset = 0;    // in elements
  c10::ScalarType dtype = c10::ScalarType::Float;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  bool requires_grad = false;
  bool is_wrapped_number = false;  // made from a C++ number, and type promotion treats it as one
  bool is_conj = false;            // LibTorch's lazy conjugation, as in the result of conj(x)
  bool is_neg = false;             // LibTorch's lazy negation, as in the result of imag(conj(x))
};

// Row-major strides; a dimension of size 0 counts as 1.
std::vector<c10::SymInt> contiguous_strides(c10::ArrayRef<c10::SymInt> sizes);

// The dimensions from the outermost to the innermost: by decreasing stride. Dimensions with equal strides keep their
// order.
std::vector<std::int64_t> outermost_first(at::IntArrayRef strides);

// Bytes from the beginning of the storage to the end of the last element. 0 if there is no element.
c10::SymInt bytes_of_elements(const TensorSpec& spec);

// Describes a real or fake tensor.
TensorSpec spec_of(const at::Tensor& tensor);

// Makes a leaf. Shares the storage of `alias_of` (a fake) if that is given.
at::Tensor make_fake(const TensorSpec& spec, const at::Tensor& alias_of = {});

// False for an undefined tensor.
bool is_fake(const at::Tensor& tensor);

// True if forward-mode differentiation has given the tensor a tangent (torch::_make_dual()).
bool has_tangent(const at::Tensor& tensor);

// The reason why no fake can stand for the tensor: "sparse", "nested", "quantized", "mkldnn", "dual", "named". Empty if
// a fake can stand for the tensor, and for an undefined tensor.
std::string kind_without_fakes(const at::Tensor& tensor);

// Identifies the value for which a fake stands. In-place operators and autograd's copies of saved tensors keep the
// number; each new result of an operator gets a new number. Unique in the process. Throws std::invalid_argument for a
// real tensor.
std::uint64_t fake_id(const at::Tensor& fake);

// True if both have the same storage. (Tensor::is_alias_of() would access the memory of fakes and throw.)
bool share_storage(const at::Tensor& left, const at::Tensor& right);

// True if code or operators have read sizes, strides, offset, contiguity or number of elements of the fake. Dtype and
// number of dimensions do not count, nor do reads by spec_of() and meta_of(). False for a real tensor.
bool layout_was_read(const at::Tensor& fake);
// True if traced code, not an operator, has read the storage offset of the fake or of another fake with its storage.
bool offset_was_read(const at::Tensor& fake);

// The tensor's description in a graph, with symbols as their expressions.
graph::TensorMeta meta_of(const at::Tensor& tensor);

}  // namespace rehearse::capture
