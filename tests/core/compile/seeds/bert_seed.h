// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "models/bert.h"

namespace rehearse::compiler {

// PyTorch's test_hf_bert_ddp_aot_eager and ..._inductor: BERT for masked words with its loss, in training mode, under
// FakeDDP, eager and compiled from the same seed. Loss, logits, the gradient of each parameter and its value are the
// same bit for bit, in one compilation of so many pieces. `ids` are the labels too.
void expect_bert_like_eager(const test::BertShape& shape, const at::Tensor& ids, double bucket_cap_mb,
                            std::int64_t pieces);

}  // namespace rehearse::compiler
