// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <rehearse/parallel/ddp_options.h>

#include "parallel/model/module_state.h"

namespace rehearse::parallel {

// Makes LibTorch's reducer with the buckets of the first iteration, as _ddp_init_helper() in
// torch/nn/parallel/distributed.py does. Throws c10::ValueError for invalid bucket sizes.
std::shared_ptr<c10d::Reducer> make_reducer(const ReducedParameters& parameters,
                                            const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                                            const DistributedDataParallelOptions& options);

}  // namespace rehearse::parallel
