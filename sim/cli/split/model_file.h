// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/graph/exported_program.h>

namespace rehearse::cli {

// Reads the graph of an exported model, without its data. `file`: an archive of torch.export, or the model.json of such
// an archive. `model`: one of the archive's models; empty: the only one. Throws sim::InputError if the file cannot be
// read, and UsageError if it is of another kind or has no such model. Both errors name the file.
graph::ExportedProgram read_model_file(const std::string& file, const std::string& model);

}  // namespace rehearse::cli
