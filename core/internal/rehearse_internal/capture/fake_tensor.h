// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <c10/core/SymInt.h>

#include <rehearse/graph/metadata.h>

// Tensors without data. A fake tensor has sizes (numbers or symbols), strides, dtype, device and a place in LibTorch's
// autograd, and shares a storage with those that alias it; the storage holds no memory. Operators on fakes work while a
// FakeMode is on (fake_mode.h); every look at their data throws.
namespace rehearse::capture {

// What a tensor is, but for its data.
struct TensorSpec {
  std::vector<c10::SymInt> sizes;
  std::vector<c10::SymInt> strides;  // in elements; as many as sizes
  c10::SymInt storage_offset = 0;    // in elements
  c10::ScalarType dtype = c10::ScalarType::Float;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  bool requires_grad = false;
  bool is_wrapped_number = false;  // made of a C++ number: gives way in type promotion
  bool is_conj = false;            // LibTorch's lazy bits, of conj() and of a complex tensor's imaginary part
  bool is_neg = false;
};

// Row-major strides; dimensions of size 1 or 0 count as 1.
std::vector<c10::SymInt> contiguous_strides(c10::ArrayRef<c10::SymInt> sizes);

// From the beginning of the storage to the last element. 0 if there is none.
c10::SymInt bytes_of_elements(const TensorSpec& spec);

// Of a real or fake tensor.
TensorSpec spec_of(const at::Tensor& tensor);

// A leaf. Shares the storage of `alias_of` (a fake) where that is given.
at::Tensor make_fake(const TensorSpec& spec, const at::Tensor& alias_of = {});

// False of an undefined tensor.
bool is_fake(const at::Tensor& tensor);

// Whether forward-mode differentiation has given it a tangent (torch::_make_dual()).
bool has_tangent(const at::Tensor& tensor);

// What keeps a fake from standing for the tensor: "sparse", "nested", "quantized", "mkldnn", "dual". Empty: nothing.
std::string kind_without_fakes(const at::Tensor& tensor);

// Identity of the value that a fake stands for: kept by the copies that autograd makes of saved tensors and by in-place
// operators, new for each result of an operator. Unique in a fiber. Throws std::invalid_argument for a real tensor.
std::uint64_t fake_id(const at::Tensor& fake);

// Whether they have one storage. (Tensor::is_alias_of() looks at the memory of fakes and throws.)
bool share_storage(const at::Tensor& left, const at::Tensor& right);

// Whether sizes, strides, offset, contiguity or number of elements of the fake were asked for, by operators too; not by
// spec_of() and meta_of(). Its dtype and number of dimensions are no part of that. False of a real tensor.
bool layout_was_read(const at::Tensor& fake);
// Whether captured code, not an operator, asked where in its storage the fake or a view of it begins.
bool offset_was_read(const at::Tensor& fake);

// What a graph's node says of the tensor; symbols as their expressions.
graph::TensorMeta meta_of(const at::Tensor& tensor);

}  // namespace rehearse::capture
