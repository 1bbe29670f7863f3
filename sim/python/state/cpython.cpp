// SPDX-License-Identifier: BSD-3-Clause
#include "python/state/cpython.h"

#include <frameobject.h>

#include <cstddef>
#include <stdexcept>

#include <dlfcn.h>
#include <link.h>

namespace rehearse::python {
namespace {

// Whether signal.set_wakeup_fd() takes the calling thread for the main one.
bool is_main_thread(PyObject* set_wakeup_fd) {
  PyObject* const before = PyObject_CallFunction(set_wakeup_fd, "i", -1);
  if (before == nullptr) {
    PyErr_Clear();
    return false;
  }
  if (PyLong_AsLong(before) >= 0) Py_XDECREF(PyObject_CallFunctionObjArgs(set_wakeup_fd, before, nullptr));
  Py_DECREF(before);
  return true;
}

// Whether the interpreter reads the id of its main thread from `word`.
bool is_id_of_main_thread(unsigned long* word, PyObject* set_wakeup_fd) {
  const unsigned long id = *word;
  *word = id + 1;
  const bool without = is_main_thread(set_wakeup_fd);
  *word = id;
  return !without && is_main_thread(set_wakeup_fd);
}

// The bytes of the interpreter's exported variable _PyRuntime.
struct Runtime {
  char* begin = nullptr;
  std::size_t bytes = 0;
};

Runtime find_runtime() {
  auto* const begin = static_cast<char*>(dlsym(RTLD_DEFAULT, "_PyRuntime"));
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  const auto extra = reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol));
  if (begin == nullptr || dladdr1(begin, &info, extra, RTLD_DL_SYMENT) == 0 || symbol == nullptr)
    throw std::runtime_error("this Python exports no _PyRuntime");
  return {begin, symbol->st_size};
}

}  // namespace

PyThreadState* attached_state() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked();
#else
  return _PyThreadState_UncheckedGet();
#endif
}

MainThread find_main_thread() {
  const auto runtime = find_runtime();
  PyObject* const signals = PyImport_ImportModule("signal");
  PyObject* const set_wakeup_fd = signals != nullptr ? PyObject_GetAttrString(signals, "set_wakeup_fd") : nullptr;
  MainThread found;
  if (set_wakeup_fd != nullptr && is_main_thread(set_wakeup_fd)) {
    const unsigned long own = PyThread_get_thread_ident();
    for (std::size_t at = 0; at + sizeof own <= runtime.bytes && found.id == nullptr; at += sizeof own) {
      auto* const word = reinterpret_cast<unsigned long*>(runtime.begin + at);
      if (*word == own && is_id_of_main_thread(word, set_wakeup_fd)) found.id = word;
    }
  }
  Py_XDECREF(set_wakeup_fd);
  Py_XDECREF(signals);
  PyErr_Clear();
  if (found.id == nullptr) throw std::runtime_error("call this on Python's main thread");
  auto** const next = reinterpret_cast<PyThreadState**>(found.id + 1);
  if (*next == PyThreadState_Get()) found.state = next;
  return found;
}

PyObject* dictionary_of(PyTypeObject* type) noexcept {
#if PY_VERSION_HEX >= 0x030C0000
  PyObject* const dictionary = PyType_GetDict(type);
  Py_XDECREF(dictionary);  // the class keeps it
  return dictionary;
#else
  return type->tp_dict;
#endif
}

PyObject* name_of(PyCodeObject* code) noexcept {
#if PY_VERSION_HEX >= 0x030B0000
  return code->co_qualname;
#else
  return code->co_name;
#endif
}

void walk_frames(PyThreadState* state, const std::function<bool(PyCodeObject* code, int instruction)>& note) {
  const bool attaches = attached_state() == nullptr;
  if (attaches) PyEval_RestoreThread(state);
  const int collects = PyGC_Disable();  // frames are made as objects here, and a collection may run any code
  for (PyFrameObject* frame = PyThreadState_GetFrame(state); frame != nullptr;) {
    PyCodeObject* const code = PyFrame_GetCode(frame);
#if PY_VERSION_HEX >= 0x030B0000
    const int instruction = PyFrame_GetLasti(frame);
#else
    const int instruction = frame->f_lasti * 2;
#endif
    const bool goes_on = note(code, instruction);
    Py_DECREF(code);
    PyFrameObject* const caller = goes_on ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    frame = caller;
  }
  if (collects != 0) PyGC_Enable();
  if (attaches) PyEval_SaveThread();
}

}  // namespace rehearse::python
