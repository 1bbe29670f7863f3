// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace rehearse::parallel {

// Frees the memory of the tensor's storage, for all tensors that share it. Whoever asks for elements then gets a
// c10::Error with the text that refuse_when_freed() was given, in any fiber or thread, and never a null pointer.
void free_storage(const at::Tensor& tensor);
void refuse_when_freed(const at::Tensor& tensor, const std::string& text);

// The same for good. The storage has its size all the same, so that views can be made, and whoever reads one gets the
// text.
void refuse_for_good(const at::Tensor& tensor, const std::string& text);

// Gives the storage memory for `bytes` again, with anything in it. Tensors that share it, views and those that autograd
// has saved too, have it as well; no version is counted. Throws what the device's allocator throws.
void fill_storage(const at::Tensor& tensor, std::size_t bytes);

}  // namespace rehearse::parallel
