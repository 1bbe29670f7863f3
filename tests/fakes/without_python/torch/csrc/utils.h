// SPDX-License-Identifier: BSD-3-Clause
// Replaces LibTorch's header of this name. FakeProcessGroup.hpp includes LibTorch's header without need, and that
// header needs Python's.
#pragma once

#include <ATen/ATen.h>
