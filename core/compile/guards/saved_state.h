// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <optional>
#include <string>

#include <c10/core/AutogradState.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <rehearse/compile/guard_failure.h>

#include "compile/guards/global_state.h"
#include "compile/guards/module_modes.h"

namespace rehearse::compiler {

// The modes that the calling fiber's code starts with. If the code is refused and runs again from its start, restore()
// makes it start with the same modes. Objects must lie on the stack, in the frame that calls the code (ModeSwitches).
class SavedState {
 public:
  SavedState();

  // The first mode that differs now; nothing if none does.
  std::optional<GuardFailure> change() const;
  // Restores what GlobalState compares, the dtypes of autocast also while it is off, the thread's dispatch keys, and
  // the modes of modules. Deterministic algorithms, the default dtype and the back ends of attention belong to the
  // whole process. Returns what ModeSwitches::undo() returns.
  std::string restore();

 private:
  const GlobalState state_;                    // includes the modes of modules
  const c10::impl::LocalDispatchKeySet keys_;  // includes whether autocast is on
  const c10::AutogradState autograd_;          // grad mode, inference mode
  const std::array<c10::ScalarType, 2> autocast_dtypes_;
  ModeSwitches modules_;
};

}  // namespace rehearse::compiler
