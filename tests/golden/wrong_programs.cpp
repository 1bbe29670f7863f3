// SPDX-License-Identifier: BSD-3-Clause
#include "wrong_programs.h"

#include <ATen/ops/ones.h>
#include <unistd.h>

namespace wrong_programs {

void oversleeps(RankContext& ctx) {
  auto loss = at::ones({1});
  if (ctx.rank() == 1) sleep(3600);
  ctx.group().allreduce(loss)->wait();
}

void sends_to_nobody(RankContext& ctx) {
  auto block = at::ones({4});
  if (ctx.rank() == 1) ctx.group().send(block, ctx.rank() + 1)->wait();
}

}  // namespace wrong_programs
