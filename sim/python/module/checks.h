// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace rehearse::python {

// Adds the state checkers to the extension module. A state of Python's is a list of tuples: name, tensor, whether it is
// a buffer, and for a part of a tensor the sizes of the whole and the first row; see checks::NamedTensor.
void define_checks(pybind11::module_& module);

}  // namespace rehearse::python
