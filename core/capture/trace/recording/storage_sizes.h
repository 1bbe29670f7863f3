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

// Answers how many bytes the storages of fakes have.
class StorageSizes {
 public:
  explicit StorageSizes(Inputs& inputs) : inputs_(inputs) {}

  // Notes a question about a storage that exists before the graph, so that a guard can check it. The answer follows
  // from the sizes of its tensor if the storage holds exactly the tensor's elements; else it is a plain number. Throws
  // NotCapturable for a sharded parameter. `where`: the place for that error.
  c10::SymInt bytes_of(const at::Tensor& fake, const exec::CallSite& where);
  // From now on the size of the fake's own storage counts.
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
