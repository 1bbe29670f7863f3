// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/graph/exported_program.h>

namespace rehearse::cli {

// The graph of an exported model, without its data, from an archive of torch.export or from the model.json of one.
// `model`: one of the archive's models; empty: the only one. Throws sim::InputError if the file cannot be read, and
// UsageError if it is no such file or has no such model. Both name the file.
graph::ExportedProgram read_model_file(const std::string& file, const std::string& model);

}  // namespace rehearse::cli
