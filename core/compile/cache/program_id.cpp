// SPDX-License-Identifier: BSD-3-Clause
#include "compile/cache/program_id.h"

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <rehearse_internal/exec/build_id.h>
#include <rehearse_internal/hash/fnv1a.h>

namespace rehearse::compiler {

std::string program_id() {
  const std::string ours = exec::build_id_at(reinterpret_cast<const void*>(&program_id));
  const std::string libtorch = exec::build_id_at(&at::globalContext());
  if (ours.empty() || libtorch.empty()) return "";
  Fnv1a loaded;
  for (const std::string& each : exec::loaded_code()) loaded.add(each + "\n");
  return fmt::format("Rehearse {}, LibTorch {} {}, {}, and libraries {:016x}", ours, TORCH_VERSION, libtorch,
                     at::get_cpu_capability(), loaded.value());
}

}  // namespace rehearse::compiler
