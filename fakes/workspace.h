// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <rehearse_internal/comm/fabric.h>

#include "region.h"

namespace rehearse::fakes {

using Calls = std::span<comm::Operation* const>;

// Transfers work in blocks of at most this size, so that a block stays in the cache from its first use to its last.
inline constexpr std::size_t kBlockBytesMax = 16 << 10;

// Scratch memory for transfers. The fabric keeps it from one transfer to the next, so that a warm fabric allocates only
// copies (copy_of()) and the tensors of sparse and coalesced transfers.
struct Workspace {
  struct alignas(64) Block {
    std::byte bytes[kBlockBytesMax];
  };

  Block accumulator;
  Block result;       // the accumulator, rounded
  Block gathered[4];  // blocks of inputs that are not contiguous

  // Gloo reduces the parts of a coalesced all-reduce as one tensor. These count the tensor's elements before and after
  // the current part.
  struct OtherParts {
    std::int64_t before = 0;
    std::int64_t after = 0;
  } other_parts;

  std::vector<Region> inputs;
  std::vector<Region> outputs;
  std::vector<Region> pieces;
  std::vector<double> factors;
  std::vector<std::unique_ptr<std::byte[]>> copies;

  void reset() {
    inputs.clear();
    outputs.clear();
    pieces.clear();
    factors.clear();
    copies.clear();
  }

  // Copies the region's elements; the copy is valid until reset(). Use it for an input that shares memory with an
  // output that is written before the input has been read.
  Region copy_of(const Region& region, std::int64_t count, std::size_t element_bytes) {
    copies.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(count) * element_bytes));
    gather(copies.back().get(), region, count, element_bytes);
    return {copies.back().get(), nullptr, 0};
  }
};

inline Region input_region(const at::Tensor& tensor) { return read_region(*tensor.unsafeGetTensorImpl()); }
inline Region output_region(const at::Tensor& tensor) { return write_region(*tensor.unsafeGetTensorImpl()); }

// True if the ranks' tensors (one each, picked by `tensor_of`) may be taken in the order of memory instead of the
// logical order. This holds if all have the same layout without gaps, for example channels_last: then corresponding
// elements stand at the same place. False for contiguous tensors: their two orders are the same.
template <class TensorOf>
bool all_dense_alike(Calls calls, const TensorOf& tensor_of) {
  const at::Tensor& first = tensor_of(*calls[0]);
  if (first.is_contiguous() || !first.is_non_overlapping_and_dense()) return false;
  for (const comm::Operation* const call : calls) {
    const at::Tensor& other = tensor_of(*call);
    if (other.sizes() != first.sizes() || other.strides() != first.strides()) return false;
  }
  return true;
}

// Carries out the ranks' calls of one operation.
using Mover = void (*)(Calls calls, Workspace& workspace);

// The transfer must have no parts. move_reduction() takes transfers that reduce, and move_copies() takes all others.
void move_copies(const comm::Transfer& transfer, Workspace& workspace);
void move_reduction(const comm::Transfer& transfer, Workspace& workspace);

inline void move_call(const comm::Transfer& transfer, Workspace& workspace) {
  workspace.reset();
  const bool reduces = comm::op_row(transfer.type).kind == comm::OpKind::reduces;
  (reduces ? move_reduction : move_copies)(transfer, workspace);
}

// Gives each rank's output the coalesced sum of the ranks' sparse COO tensors.
void allreduce_sparse(Calls calls, Workspace& workspace);

}  // namespace rehearse::fakes
