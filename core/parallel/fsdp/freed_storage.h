// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace rehearse::parallel {

// Frees the memory of the tensor's storage, for all tensors that share it. Any access to elements, in any fiber or
// thread, then throws c10::Error with the text passed to refuse_when_freed(); without this error, the access would
// return null.
void free_storage(const at::Tensor& tensor);
void refuse_when_freed(const at::Tensor& tensor, const std::string& text);

// Frees the memory of the tensor's storage for good. The storage then has the tensor's size, so that views can still be
// made; reading a view throws c10::Error with `text`.
void refuse_for_good(const at::Tensor& tensor, const std::string& text);

// Gives the tensor's storage memory again: `bytes` bytes, with undefined contents. All tensors that share the storage
// see the memory, including views and tensors that autograd has saved. No version changes. Throws what the device's
// allocator throws.
void fill_storage(const at::Tensor& tensor, std::size_t bytes);

}  // namespace rehearse::parallel
