// SPDX-License-Identifier: BSD-3-Clause
#include "compile/captures/capture.h"

#include <rehearse_internal/graph/structural_hash.h>

namespace rehearse::compiler {

bool same_function(const Capture& a, const Capture& b) {
  const auto hash_of = [](const Capture& capture) {
    return graph::structural_hash(*capture.module, graph::Placeholders::OfAnyForm);
  };
  return a.inputs == b.inputs && a.constants == b.constants && hash_of(a) == hash_of(b);
}

}  // namespace rehearse::compiler
