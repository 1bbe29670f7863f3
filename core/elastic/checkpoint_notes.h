// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <rehearse/elastic/run.h>

namespace torch::nn {
class Module;
}

// A Checkpoint's notes in the journal of its world (CheckpointJournal), if there is one.
namespace rehearse::elastic {

// The calling rank has called save(), with `module` in the state after `steps` steps.
void note_saved(const Round& round, const torch::nn::Module& module, std::int64_t steps);

// The calling rank has resumed from the checkpoint that the round `saved_in` saved after `steps` steps.
void note_restored(const Round& round, int saved_in, std::int64_t steps);

}  // namespace rehearse::elastic
