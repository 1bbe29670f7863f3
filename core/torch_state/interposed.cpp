// SPDX-License-Identifier: BSD-3-Clause
#include "torch_state/interposed.h"

#include <string>

#include <dlfcn.h>

#include <rehearse_internal/libtorch/version.h>
#include <rehearse_internal/torch_state/torch_state_error.h>

#include "torch_state/tls/tls_layout.h"

namespace rehearse::torch_state {

void require_interposed(const Interposed& interposed) {
  const std::string what = std::string(interposed.function) + ", so " + std::string(interposed.without);
  bool exists = false;
  for (const auto& [symbol, ours] : interposed.names) {
    if (dlsym(RTLD_NEXT, symbol) == nullptr) continue;
    exists = true;
    if (dlsym(RTLD_DEFAULT, symbol) == ours) continue;
    throw TorchStateError(TorchStateError::Reason::interposer_missing, "",
                          "the executable does not export " + what +
                              ". Link rehearse::core into the executable itself, with default symbol visibility and no "
                              "version script that hides it.");
  }
  if (!exists) refuse_version("", "LibTorch " + std::string(libtorch::kVersion) + " has no " + what);
}

}  // namespace rehearse::torch_state
