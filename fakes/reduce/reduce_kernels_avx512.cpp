// SPDX-License-Identifier: BSD-3-Clause
#define REHEARSE_ISA avx512
#include "reduce/reduce_loops.h"
