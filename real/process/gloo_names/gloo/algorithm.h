// SPDX-License-Identifier: BSD-3-Clause
// Empty on purpose: see docs/decisions/0003-gloo-without-its-headers.md.
#pragma once
