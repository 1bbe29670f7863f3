// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

// How large a tensor's storage is, in bytes. A sharded parameter frees the memory of its whole between two uses, and
// stays the same tensor. PyTorch's Python has untyped_storage().resize_() for that.
//
//   const c10::SymInt bytes = rehearse::storage_bytes(whole);
//   rehearse::resize_storage(whole, 0);      // frees the memory: nobody may use the elements now
//   rehearse::resize_storage(whole, bytes);  // has memory again, with anything in it
//
// In a captured function both are part of the graph: the storage changes when the graph comes to that point, and a
// question about an argument, parameter or buffer is a guard. Tensors that share the storage see the change. Autograd
// does not: no version is counted, and a tensor that was saved for a backward is gone with its memory. An operator that
// uses elements without memory may end the process, as in PyTorch.
//
// Fibers, threads: as operators. Blocking: never. Devices: the CPU.
// Errors: c10::ValueError for an undefined tensor and for a negative number; c10::NotImplementedError for a tensor of
// another device; c10::Error for memory that cannot be resized, as that of from_blob(). In a captured function
// capture::NotCapturable, with the line, for a question behind a read or an eager region.
namespace rehearse {

// Bytes of the storage; more than the elements take if the tensor is a part of another one, and 0 if it has been freed.
c10::SymInt storage_bytes(const at::Tensor& tensor);

// Gives the storage that many bytes. Bytes that stay keep their values.
void resize_storage(const at::Tensor& tensor, const c10::SymInt& bytes);

}  // namespace rehearse
