// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

// Collectives of payloads whose size differs from rank to rank and that only their owner knows: what
// torch.distributed.all_gather_object() and its kind are in Python. A payload is bytes; to_bytes() and from_bytes()
// make them of what torch.save() can write: numbers, strings, lists, dicts, tuples, tensors.
//
//   const auto names = rehearse::comm::all_gather_object(ctx.group(), "host" + std::to_string(ctx.rank()));
//   const auto state = from_bytes(broadcast_object(ctx.group(), ctx.rank() == 0 ? to_bytes(dict) : ""));
//
// Sizes travel first, then the bytes, padded to the largest where the collective wants equal sizes: any
// c10d::ProcessGroup with the named collectives on CPU tensors of int64 and uint8 will do. An empty payload is one like
// any other.
//
// Blocking: every call waits for its collectives. Fibers, threads: as the group. Ownership: by value throughout.
// Roots are ranks of the group. Errors: c10::ValueError for an empty group, a root that is none, or (on the root) a
// number of payloads other than that of ranks; those of the group's collectives.
namespace rehearse::comm {

using ProcessGroupPtr = c10::intrusive_ptr<c10d::ProcessGroup>;

// All ranks' payloads, by rank. Two all-gathers; ranks x largest bytes on each rank.
std::vector<std::string> all_gather_object(const ProcessGroupPtr& group, std::string_view payload);

// The root's payload; those of other ranks are not looked at. Two broadcasts.
std::string broadcast_object(const ProcessGroupPtr& group, std::string_view payload, int root = 0);

// All ranks' payloads, by rank, on the root; nothing elsewhere. An all-gather of sizes and a gather.
std::vector<std::string> gather_object(const ProcessGroupPtr& group, std::string_view payload, int root = 0);

// Returns the calling rank's one of the root's payloads, which has one for each rank. Other ranks pass none. A
// broadcast of sizes and a scatter.
std::string scatter_object(const ProcessGroupPtr& group, const std::vector<std::string>& payloads, int root = 0);

// torch.save() and torch.load(). from_bytes() throws c10::Error for what is no such thing.
std::string to_bytes(const c10::IValue& value);
c10::IValue from_bytes(std::string_view bytes);

}  // namespace rehearse::comm
