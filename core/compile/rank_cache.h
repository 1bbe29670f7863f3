// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include <rehearse/compile/backend.h>
#include <rehearse/compile/compile_options.h>

#include "compile/arguments/dynamism.h"
#include "compile/cache/compile_cache.h"
#include "compile/compiler_collectives/agreement.h"
#include "compile/entry_cache.h"
#include "compile/partitions/graph_dump.h"

namespace rehearse::compiler {

// Everything that one rank keeps for one function.
struct RankCache {
  explicit RankCache(const CompileOptions& options)
      : dynamism(options.dynamic),
        backend(options.backend.get()),
        agreement(options),
        entries(options),
        dump(options),
        stored(options) {}

  Dynamism dynamism;
  std::shared_ptr<Backend> backend;
  Agreement agreement;
  EntryCache entries;
  GraphDump dump;
  CompileCache stored;
};

}  // namespace rehearse::compiler
