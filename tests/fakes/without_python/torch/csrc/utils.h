// SPDX-License-Identifier: BSD-3-Clause
// Replaces LibTorch's header of this name. FakeProcessGroup.hpp includes it without need, and it would need Python's
// headers.
#pragma once

#include <ATen/ATen.h>
