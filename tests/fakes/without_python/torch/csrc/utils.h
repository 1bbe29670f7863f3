// SPDX-License-Identifier: BSD-3-Clause
// Takes the place of LibTorch's header of this name, which FakeProcessGroup.hpp includes and does not need: that one
// wants Python's headers.
#pragma once

#include <ATen/ATen.h>
