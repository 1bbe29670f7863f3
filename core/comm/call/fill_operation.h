// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/comm/operation.h>

#include "argument_checks.h"

// Functions that fill in an operation. Those that take `check` first check that the tensors fit together; the caller
// has made all other checks. Used for single calls and for the parts of coalesced calls.
namespace rehearse::comm {

void set_reduce_op(const c10d::ReduceOp& op, Operation& call);

void fill_allreduce(const at::Tensor& tensor, const c10d::ReduceOp& op, Operation& call);

// `outputs`: one for each rank.
void fill_allgather(const ArgumentChecks& check, const ArgumentChecks::Tensors& outputs, const at::Tensor& input,
                    int rank, Operation& call);

void fill_allgather_base(const ArgumentChecks& check, const at::Tensor& output, const at::Tensor& input,
                         Operation& call);

void fill_reduce_scatter_base(const ArgumentChecks& check, const at::Tensor& output, const at::Tensor& input,
                              const c10d::ReduceOp& op, Operation& call);

}  // namespace rehearse::comm
