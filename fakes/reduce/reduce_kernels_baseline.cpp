// SPDX-License-Identifier: BSD-3-Clause
#define REHEARSE_ISA baseline
#include "reduce/reduce_loops.h"
