// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <typeinfo>  // Placement.h uses it and does not include it
#include <variant>

#include <torch/csrc/distributed/Placement.h>

namespace rehearse {

// How a tensor is distributed along one dimension of a mesh, in LibTorch's own classes: each rank has all of it, a
// shard of it, or a term of its sum. Use this type instead of the base class torch::distributed::Placement, which loses
// the derived class when copied by value and has no ==.
using AnyPlacement =
    std::variant<torch::distributed::Replicate, torch::distributed::Shard, torch::distributed::Partial>;

}  // namespace rehearse
