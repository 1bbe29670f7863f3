// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <rehearse/compile/explanation.h>
#include <rehearse/job/rank_context.h>

#include "core/compile/seeds/seed_run.h"
#include "models/bert.h"

namespace rehearse::compiler {

struct BertSeed {
  test::BertShape shape;
  std::int64_t texts = 4;
  std::int64_t words = 16;
  double bucket_cap_mb = 25;
  int steps = 1;
  bool static_graph = false;  // option of DistributedDataParallel
};

struct BertRun {
  CompileStats stats;
  Counts compiles;  // of each step
};

// These functions port PyTorch's test_hf_bert_ddp_aot_eager and test_hf_bert_ddp_inductor. They run forward and
// backward of BERT for masked words, with dropout and a loss, compiled and in eager mode. In both modes, a step starts
// from the same random seed. Loss, logits and the gradient of each parameter must be equal, bit for bit, and no
// parameter may change.

// Runs under FakeDDP.
BertRun expect_bert_like_eager(const BertSeed& seed);

// Runs under DistributedDataParallel, with compiler collectives. Ranks have different texts, labels and dropout seeds.
// From the second step on, all ranks but 0 damage their buffers before each forward, and DDP must restore them.
BertRun expect_bert_like_eager_on_rank(RankContext& ctx, const BertSeed& seed);

}  // namespace rehearse::compiler
