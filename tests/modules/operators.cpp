// SPDX-License-Identifier: BSD-3-Clause
// A program that registers an operator, which belongs to the process and not to a rank.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>

TORCH_LIBRARY(rehearse_test_module, library) {
  library.def("same(Tensor x) -> Tensor", [](const at::Tensor& x) { return x.clone(); });
}

REHEARSE_PROGRAM(same){.summary = "nothing", .body = [](rehearse::RankContext&, const rehearse::Parameters&) {}};
