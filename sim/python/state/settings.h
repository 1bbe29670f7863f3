// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Python.h>

#include <cstddef>
#include <vector>

namespace rehearse::python {

// Settings of a process of which each rank has its own, such as the working directory or torch's default type. Each has
// a function that sets it. A switch calls it if the ranks differ.
class Settings {
 public:
  // `set`: a function without Python code. `of_host`: the arguments that set what lives now, as a tuple and a
  // dictionary (a pair). Keeps references to both for the life of the process. Returns the setting's index.
  std::size_t add(PyObject* set, PyObject* of_host);
  // `rank` has called the function with these arguments. -1: host code, whose settings new ranks get.
  void note(int rank, std::size_t setting, PyObject* arguments);
  // A thread state must be attached.
  void exchange(int to) noexcept;
  void forget_ranks() noexcept;

 private:
  struct Setting {
    PyObject* set;
    PyObject* of_host;
    PyObject* live;  // borrowed
  };

  PyObject*& of_rank(int rank, std::size_t setting);

  std::vector<Setting> all_;
  std::vector<std::vector<PyObject*>> of_ranks_;  // by rank and setting; null: the host's
};

}  // namespace rehearse::python
