// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/core/SymInt.h>

#include <rehearse/capture/captured_graph.h>
#include <rehearse/exec/call_site.h>

#include "capture/trace/recording/inputs.h"

namespace rehearse::capture {

class StorageSizes {
 public:
  explicit StorageSizes(Inputs& inputs) : inputs_(inputs) {}

  // The bytes of the fake's storage. If a tensor from outside of the graph has this storage, notes the answer, so that
  // a guard can check it. The answer is then an expression over the sizes of that tensor if the storage ends with the
  // tensor's last element, else a plain number. Throws NotCapturable for a sharded parameter. `where`: the place for
  // that error.
  c10::SymInt bytes_of(const at::Tensor& fake, const exec::CallSite& where);
  // Call it when captured code has resized the storage: from now on, bytes_of() returns the size of the fake's storage.
  void note_resized(const at::Tensor& fake);

  const std::vector<StorageFact>& asked() const noexcept { return asked_; }

 private:
  bool was_resized(const at::Tensor& fake) const;
  Inputs::Source* source_with_storage(const at::Tensor& fake);

  Inputs& inputs_;
  std::vector<c10::Storage> resized_;
  std::vector<StorageFact> asked_;
};

}  // namespace rehearse::capture
