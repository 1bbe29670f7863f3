// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "compile/segments/segmented_capture.h"

namespace rehearse::compiler {

// One call that runs the user's code segment by segment.
struct Segmented {
  std::shared_ptr<SegmentTree> tree;
  SegmentRun& run;
  SegmentOwner owner;
  SegmentedCapture capture{*tree, owner, run};
};

}  // namespace rehearse::compiler
