// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <typeinfo>

#include <c10/core/AutogradState.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <rehearse/compile/guard_failure.h>

#include "compile/guards/module_modes.h"

namespace rehearse::compiler {

// The bytes of a call's function object, from UserCode::function(). They are no part of the state: only the guards of
// groups that the object keeps read them.
struct FunctionBytes {
  std::span<const std::byte> bytes = {};
  bool operator==(const FunctionBytes&) const { return true; }
};

// The state of a call other than its argument values: the types, and the settings that operators read in the calling
// fiber.
struct GlobalState {
  const std::type_info* types = nullptr;  // types of the function, its arguments and its result; null: unset
  bool grad_mode = true;
  bool inference_mode = false;
  std::array<bool, 2> autocast = {};  // on CPU, on CUDA
  // Undefined if autocast is off, because nothing uses the dtype then.
  std::array<c10::ScalarType, 2> autocast_dtype = {c10::ScalarType::Undefined, c10::ScalarType::Undefined};
  bool autocast_cache = true;
  bool deterministic = false;
  bool deterministic_warns_only = false;
  c10::ScalarType default_dtype = c10::ScalarType::Float;
  std::array<bool, 4> attention = {true, true, true, true};  // attention back ends: flash, efficient, math, cuDNN
  std::uint64_t module_modes = 0;                            // see module_modes(); 0: unset, or unchanged
  FunctionBytes function = {};

  // Leaves types, module modes and the function unset.
  static GlobalState current();
  bool operator==(const GlobalState&) const = default;
};

// True if a guard of the calling fiber, such as at::AutoDispatchBelowADInplaceOrView, hides autograd from operators.
// Inference mode alone does not count.
bool hides_autograd() noexcept;

// The first field that differs. The states must differ.
GuardFailure difference(const GlobalState& expected, const GlobalState& found);

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
