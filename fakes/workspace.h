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

// Transfers go through in blocks, so that what is read from memory once stays in cache until it has been used.
inline constexpr std::size_t kBlockBytesMax = 16 << 10;

// Memory that transfers need for a moment; kept from one to the next, so that a warm fabric allocates nothing.
struct Workspace {
  struct alignas(64) Block {
    std::byte bytes[kBlockBytesMax];
  };

  Block accumulator;
  Block result;       // what the accumulator is rounded to
  Block gathered[4];  // blocks of strided inputs

  // Gloo reduces the parts of a coalesced all-reduce as one tensor: how many of its elements stand before the part that
  // is carried out, and behind it.
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

  // A copy of the region's elements, valid until reset(): for inputs that share memory with outputs which are written
  // before the input has been read.
  Region copy_of(const Region& region, std::int64_t count, std::size_t element_bytes) {
    copies.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(count) * element_bytes));
    gather(copies.back().get(), region, count, element_bytes);
    return {copies.back().get(), nullptr, 0};
  }
};

inline Region input_region(const at::Tensor& tensor) { return read_region(*tensor.unsafeGetTensorImpl()); }
inline Region output_region(const at::Tensor& tensor) { return write_region(*tensor.unsafeGetTensorImpl()); }

// Can the ranks' tensors (one each, picked by `tensor_of`) be taken in the order of memory instead of the logical one?
// So it is when all are laid out alike and without gaps, say as channels_last: what belongs together is at the same
// place.
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

// How the ranks' calls of an operation are carried out.
using Mover = void (*)(Calls calls, Workspace& workspace);

// Carry out one transfer without parts: those that do not reduce, and those that do.
void move_copies(const comm::Transfer& transfer, Workspace& workspace);
void move_reduction(const comm::Transfer& transfer, Workspace& workspace);

inline void move_call(const comm::Transfer& transfer, Workspace& workspace) {
  workspace.reset();
  const bool reduces = comm::op_row(transfer.type).kind == comm::OpKind::reduces;
  (reduces ? move_reduction : move_copies)(transfer, workspace);
}

// The sum of the ranks' sparse COO tensors, coalesced, in each of them.
void allreduce_sparse(Calls calls, Workspace& workspace);

}  // namespace rehearse::fakes
