// SPDX-License-Identifier: BSD-3-Clause
#include "opaque_elsewhere.h"

#include <rehearse/capture/opaque.h>

namespace rehearse::capture::test {
namespace {

at::Tensor scaled(const at::Tensor& x) {
  return opaque([](const at::Tensor& in) { return in * 5; }, x);
}

}  // namespace

at::Tensor scaled_elsewhere(const at::Tensor& x) { return scaled(x); }

}  // namespace rehearse::capture::test
