// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

// Collectives of byte strings whose sizes may differ between ranks, as torch.distributed.all_gather_object() and its
// siblings in Python. to_bytes() and from_bytes() convert what torch.save() can write: numbers, strings, lists, dicts,
// tuples, tensors.
//
//   const auto names = rehearse::comm::all_gather_object(ctx.group(), "host" + std::to_string(ctx.rank()));
//   const auto state = from_bytes(broadcast_object(ctx.group(), ctx.rank() == 0 ? to_bytes(dict) : ""));
//
// Each collective sends the sizes first, then the bytes, padded to the largest if the collective needs equal sizes. Any
// c10d::ProcessGroup works that has the named collectives for CPU tensors of int64 and uint8. A payload may be empty.
// If no rank sends any bytes, only the sizes are sent.
//
// Blocking: every call waits for its collectives. Fibers, threads: as the group. Ownership: by value throughout. A root
// is a rank in the group. Errors: c10::ValueError for a null group, for a root outside the group, for a wrong number of
// payloads (on the root), for a payload of more than 64 GiB, and for a size that arrives negative or above 64 GiB. The
// gathers also throw it if a rank gets another size back for its own payload. The errors of the group's collectives.
namespace rehearse::comm {

using ProcessGroupPtr = c10::intrusive_ptr<c10d::ProcessGroup>;

// Returns the payloads of all ranks, by rank. Takes two all-gathers, and on each rank memory for (number of ranks) x
// (largest payload).
std::vector<std::string> all_gather_object(const ProcessGroupPtr& group, std::string_view payload);

// Returns the root's payload and ignores those of other ranks. Takes two broadcasts.
std::string broadcast_object(const ProcessGroupPtr& group, std::string_view payload, int root = 0);

// Returns the payloads of all ranks, by rank, on the root, and an empty list elsewhere. Takes an all-gather of sizes
// and a gather.
std::vector<std::string> gather_object(const ProcessGroupPtr& group, std::string_view payload, int root = 0);

// The root passes one payload for each rank; other ranks pass none. Returns the calling rank's payload. Takes a
// broadcast of sizes and a scatter.
std::string scatter_object(const ProcessGroupPtr& group, const std::vector<std::string>& payloads, int root = 0);

// torch.save() and torch.load(). from_bytes() throws c10::Error for bytes that torch.save() did not write.
std::string to_bytes(const c10::IValue& value);
c10::IValue from_bytes(std::string_view bytes);

}  // namespace rehearse::comm
