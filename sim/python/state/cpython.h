// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Python.h>

#include <functional>

#ifdef Py_GIL_DISABLED
#error "Rehearse needs CPython with the global interpreter lock: free-threaded builds are not supported"
#endif

// What differs between the versions of CPython from 3.10 to 3.14. Uses its public interface only.
namespace rehearse::python {

// The thread state attached to the calling thread; null: none, so it does not hold the interpreter lock.
PyThreadState* attached_state() noexcept;

// The words of the interpreter that name its main thread.
struct MainThread {
  unsigned long* id = nullptr;
  PyThreadState** state =
      nullptr;  // that of the main thread, to which signals go; null up to 3.12, which has no such word
};

// Finds them by trying. Call it on the main thread, which holds the interpreter lock. Throws std::runtime_error if no
// word fits.
MainThread find_main_thread();

// Borrowed: the class's own dictionary.
PyObject* dictionary_of(PyTypeObject* type) noexcept;

// Borrowed: "Trainer.run", and up to 3.10, which has no such names, "run".
PyObject* name_of(PyCodeObject* code) noexcept;

// Calls `note` with each frame of `state`, innermost first, until it returns false: with the frame's code, and the
// index of its last instruction in bytes. Attaches `state` meanwhile if no state is attached.
void walk_frames(PyThreadState* state, const std::function<bool(PyCodeObject* code, int instruction)>& note);

}  // namespace rehearse::python
