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

// How many bytes the storages of fakes have, for code that asks.
class StorageSizes {
 public:
  explicit StorageSizes(Inputs& inputs) : inputs_(inputs) {}

  // A question about a storage that exists before the graph is noted, to be guarded: it has as many bytes as the
  // elements of its tensor take, which sizes tell, or a number of its own. Throws NotCapturable for a sharded
  // parameter. `where`: for its text.
  c10::SymInt bytes_of(const at::Tensor& fake, const exec::CallSite& where);
  // From now on the fake itself tells.
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
