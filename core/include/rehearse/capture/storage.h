// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

// Ask for and change the size of a tensor's storage, in bytes. Code that shards parameters frees the memory of a whole
// parameter between two uses, and the parameter stays the same tensor object. In Python: untyped_storage().resize_().
//
//   const c10::SymInt bytes = rehearse::storage_bytes(whole);
//   rehearse::resize_storage(whole, 0);      // frees the memory: nobody may use the elements now
//   rehearse::resize_storage(whole, bytes);  // has memory again, with undefined contents
//
// In a captured function, resize_storage() becomes a node: the storage changes when the graph reaches that node. The
// capture answers storage_bytes(); if the code asks about an argument, parameter or buffer, a guard checks the answer.
// Tensors that share the storage see the change. Autograd does not: the version stays the same, and a tensor saved for
// backward loses its elements with the memory. An operator that uses elements without memory may end the process, as in
// PyTorch.
//
// Fibers, threads: as operators. Blocking: never. Devices: the CPU and GPUs.
// Errors: c10::ValueError for an undefined tensor, a tensor without a storage, or a negative number;
// c10::NotImplementedError if resize_storage() gets a tensor on another device; c10::Error for memory that cannot be
// resized, such as that of from_blob(). In a captured function: capture::NotCapturable, with the line, if the code
// calls storage_bytes() after a read or an eager region, or for a parameter of FullyShardedDataParallel.
namespace rehearse {

// Returns the size of the storage in bytes. It is more than the tensor's elements need if the tensor covers only a part
// of its storage, and 0 if the memory was freed.
c10::SymInt storage_bytes(const at::Tensor& tensor);

// Changes the size of the storage to `bytes`. Bytes within both the old and the new size keep their values.
void resize_storage(const at::Tensor& tensor, const c10::SymInt& bytes);

}  // namespace rehearse
