// SPDX-License-Identifier: BSD-3-Clause
// Programs with mistakes that the memory checkers find.
#include <ATen/ops/ones.h>

#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>

namespace buffers_job {
namespace {

using namespace rehearse;

REHEARSE_PROGRAM(in_flight){.summary = "rank 1 writes a tensor that is being reduced",
                            .body = [](RankContext& ctx, const Parameters&) {
                              auto value = at::ones({4});
                              auto work = ctx.group().allreduce(value);
                              if (ctx.rank() == 1) value.add_(1);
                              work->wait();
                            }};

REHEARSE_PROGRAM(global){.summary = "all ranks reduce the same tensor",
                         .body = [](RankContext& ctx, const Parameters&) {
                           static const auto value = at::ones({4});
                           ctx.group().allreduce(value)->wait();
                         }};

}  // namespace
}  // namespace buffers_job
