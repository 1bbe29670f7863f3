// SPDX-License-Identifier: BSD-3-Clause
// What torch/csrc/distributed/c10d/ProcessGroupGloo.hpp names of gloo's headers of this folder: pointers only.
#pragma once

namespace gloo::transport {

class Device;
class UnboundBuffer;

}  // namespace gloo::transport
