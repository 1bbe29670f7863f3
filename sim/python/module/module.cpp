// SPDX-License-Identifier: BSD-3-Clause
// The extension module _rehearse: what the package rehearse calls.
#include <torch/csrc/utils/pybind.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <rehearse/job/program.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/job/fiber_rank_context.h>
#include <rehearse_internal/operators/seen_operators.h>
#include <rehearse_internal/sim/run_log.h>
#include <rehearse_internal/sim/scenario.h>

#include "buffers/lone_training.h"
#include "python/device/cuda.h"
#include "python/module/checks.h"
#include "python/module/process.h"
#include "python/module/rank.h"
#include "python/preload/command.h"
#include "python/preload/cuda_devices.h"
#include "python/preload/random_bytes.h"
#include "python/preload/thread_values.h"
#include "torch_state/tls/tls_layout.h"

namespace rehearse::python {
namespace {

namespace py = pybind11;
using Milliseconds = std::chrono::milliseconds;
using Label = RankContext::Label;
using WithoutLock = py::call_guard<py::gil_scoped_release>;

std::unique_ptr<Process> g_process;

Process& process() {
  if (g_process == nullptr) throw std::logic_error("rehearse is not set up");
  return *g_process;
}

void set_up(std::vector<std::string> library_folders, const py::object& generator, const py::function& branches_around,
            const py::function& source_of, const py::function& begin_repetition) {
  if (g_process != nullptr) return;
  const Process::Callbacks callbacks{branches_around.ptr(), source_of.ptr(), begin_repetition.ptr()};
  g_process = std::make_unique<Process>(std::move(library_folders), generator.ptr(), callbacks);
  exec::set_interpreter(g_process.get());
  // Each run is a fork, and would find these out again.
  operators::SeenOperators::prepare();
  torch_state::tls_layout();
}

// `options`: a part of WorldOptions, by their names.
WorldOptions options_of(const py::dict& options) {
  WorldOptions world;
  const auto take = [&](const char* name, auto& value) {
    if (options.contains(name)) value = options[name].cast<std::remove_reference_t<decltype(value)>>();
  };
  auto timeout = std::chrono::duration_cast<Milliseconds>(world.timeout).count();
  take("ranks", world.ranks);
  take("seed", world.seed);
  take("stack_bytes", world.stack_bytes);
  take("call_sites", world.call_sites);
  take("explain_failures", world.explain_failures);
  take("timeout_ms", timeout);
  world.timeout = Milliseconds(timeout);
  return world;
}

py::dict run_world(const py::function& begin, const py::function& describe, const py::dict& options) {
  const RankCode code{begin, describe};
  World world(options_of(options));
  Report report;
  {
    const py::gil_scoped_release released;
    report = world.run([&](RankContext& context) { run_rank(process(), code, context); });
  }
  py::dict result;
  result["verdict"] = std::string(to_string(report.verdict));
  result["headline"] = report.headline;
  result["text"] = sim::to_text(report);
  result["json"] = sim::to_json(report);
  result["identity"] = report.identity;
  result["exit_code"] = exit_code(report.verdict);
  return result;
}

// Files that end with ".py". `prepare(path)` is called once for each, outside of ranks. `begin(rank, size, path,
// arguments)` returns the body of a rank.
class Scripts final : public ProgramKind {
 public:
  static Scripts& of_process() {
    static auto* const scripts = [] {
      auto* const made = new Scripts;
      add_program_kind(*made);
      return made;
    }();
    return *scripts;
  }

  void run_by(py::function prepare, py::function begin, py::function describe) {
    prepare_ = std::move(prepare);
    begin_ = std::move(begin);
    describe_ = std::move(describe);
    programs_.clear();
  }

  const Program* find(std::string_view name) override {
    const std::filesystem::path path(name);
    std::error_code ignored;
    if (path.extension() != ".py" || !std::filesystem::is_regular_file(path, ignored)) return nullptr;
    const auto [known, is_new] = programs_.try_emplace(std::string(name));
    if (is_new) {
      const auto file = std::filesystem::absolute(path).string();
      const py::gil_scoped_acquire lock;
      if (prepare_) prepare_(file);
      known->second = program_at(file, known->first);
    }
    return &known->second;
  }

 private:
  Program program_at(std::string path, std::string name) const {
    Program program{std::move(name), {}};
    program.spec.summary = "a Python script";
    program.spec.takes_arguments = true;
    program.spec.body = [this, path = std::move(path)](RankContext& context, const Parameters& parameters) {
      const auto begin = [&](int rank, int size) { return begin_(rank, size, path, parameters.arguments()); };
      run_rank(process(), {begin, describe_}, context);
    };
    return program;
  }

  py::function prepare_, begin_, describe_;
  std::map<std::string, Program> programs_;
};

// Runs the command with Python scripts as programs. Returns its exit code.
int run_command(const std::vector<std::string>& words, const py::function& prepare, const py::function& begin,
                const py::function& describe) {
  Scripts::of_process().run_by(prepare, begin, describe);
  std::vector<const char*> arguments;
  for (const auto& word : words) arguments.push_back(word.c_str());
  const py::gil_scoped_release released;
  return command(static_cast<int>(arguments.size()), arguments.data());
}

// The program that a scenario file or a log is about, and its arguments; empty if the file cannot be read.
std::pair<std::string, std::vector<std::string>> program_of(const std::string& file) {
  Scripts::of_process();
  try {
    const bool is_log = std::filesystem::path(file).extension() == ".rlog";
    const auto scenario =
        is_log ? sim::parse_scenario(sim::read_run_log(file).scenario_text, file) : sim::read_scenario(file);
    return {scenario.program, scenario.arguments};
  } catch (const std::exception&) {  // the command says why
    return {};
  }
}

c10::intrusive_ptr<c10d::Backend> backend_of(const Group& group, std::int64_t timeout) {
  auto backend = group.get()->getBackend(c10::DeviceType::CPU);
  if (timeout > 0) backend->setTimeout(Milliseconds(timeout));
  return backend;
}

c10::intrusive_ptr<c10d::Backend> world_backend(std::int64_t timeout) {
  return backend_of(context_of_rank().group(), timeout);
}

c10::intrusive_ptr<c10d::Backend> new_backend(const std::vector<int>& ranks, const std::string& name,
                                              std::int64_t timeout) {
  return backend_of(context_of_rank().new_local_group(ranks, name), timeout);
}

// `before`: tuples of a name, a module or class, and a copy of its dictionary. Returns the names of what it binds to
// something else now: "name.attribute". Touches no reference count: a run is a fork, which copies what it touches.
std::vector<std::string> bound_anew(const py::list& before) {
  std::vector<std::string> names;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(before.ptr()); ++i) {
    PyObject* const row = PyList_GET_ITEM(before.ptr(), i);
    PyObject* const holder = PyTuple_GET_ITEM(row, 1);
    PyObject* const now =
        PyType_Check(holder) ? dictionary_of(reinterpret_cast<PyTypeObject*>(holder)) : PyModule_GetDict(holder);
    PyObject *name = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(PyTuple_GET_ITEM(row, 2), &at, &name, &value) != 0;) {
      if (PyDict_GetItemWithError(now, name) == value) continue;
      names.push_back(py::str(PyTuple_GET_ITEM(row, 0)).cast<std::string>() + '.' + py::str(name).cast<std::string>());
    }
  }
  return names;
}

void define_set_up(py::module_& module) {
  module.def("set_up", set_up);
  module.def("add_variable", [](const py::dict& dictionary, const py::str& name, const py::object& fresh) {
    process().exchanged().variables.add(dictionary.ptr(), name.ptr(), fresh.ptr());
  });
  module.def("add_class_variable", [](const py::type& type, const py::str& name, const py::object& fresh) {
    auto* const of = reinterpret_cast<PyTypeObject*>(type.ptr());
    process().exchanged().variables.add(dictionary_of(of), name.ptr(), fresh.ptr(), of);
  });
  module.def("begin_variables", [] {
    if (!process().exchanged().variables.begin_rank(rank_or_host())) throw py::error_already_set();
  });
  module.def("add_setting", [](const py::function& set, const py::tuple& of_host) {
    return process().exchanged().settings.add(set.ptr(), of_host.ptr());
  });
  module.def("note_setting", [](std::size_t setting, const py::tuple& arguments) {
    process().exchanged().settings.note(rank_or_host(), setting, arguments.ptr());
  });
  module.def("bound_anew", bound_anew);
  module.def("add_rank_bytes", [](std::uintptr_t address, std::size_t size) {
    process().exchanged().of_ranks.push_back({reinterpret_cast<std::byte*>(address), size});
  });
}

void define_rank(py::module_& module) {
  module.def("rank", rank_or_host);
  module.def("note_habit",
             [](const std::string& text) { dynamic_cast<FiberRankContext&>(context_of_rank()).note_habit(text); });
  module.def("note_remark",
             [](const std::string& text) { dynamic_cast<FiberRankContext&>(context_of_rank()).note_remark(text); });
  module.def(
      "wait_for_works", [] { dynamic_cast<FiberRankContext&>(context_of_rank()).wait_for_works(); }, WithoutLock());
  module.def("note_step", sim::LoneTraining::note_step);
  module.def("seed", [] { return context_of_rank().generator().current_seed(); });
  module.def("seed_random_bytes", seed_random_bytes);
  module.def("store", [] { return context_of_rank().store(); });
  module.def("world_backend", world_backend, WithoutLock());
  module.def("new_backend", new_backend, WithoutLock());
  module.def(
      "set_timeout",
      [](const c10::intrusive_ptr<c10d::Backend>& made, std::int64_t milliseconds) {
        made->setTimeout(Milliseconds(milliseconds));
      },
      WithoutLock());
  module.def("now", [] { return std::chrono::duration<double>(context_of_rank().now() - kTimeZero).count(); });
  module.def("scratch_folder", [] { return context_of_rank().scratch_folder().string(); }, WithoutLock());
  module.def("shared_folder", [] { return context_of_rank().shared_folder().string(); }, WithoutLock());
  module.def(
      "compute",
      [](double seconds) {
        context_of_rank().compute(std::chrono::duration_cast<VirtualDuration>(std::chrono::duration<double>(seconds)));
      },
      WithoutLock());
  module.def(
      "progress",
      [](std::int64_t done, std::int64_t total, const std::string& text) {
        context_of_rank().progress(done, total, text);
      },
      WithoutLock());
  module.def(
      "expect",
      [](bool holds, const std::string& what, const std::string& detail) {
        context_of_rank().expect(holds, what, detail);
      },
      WithoutLock());
  module.def(
      "result", [](const std::string& name, const at::Tensor& value) { context_of_rank().result(name, value); },
      WithoutLock());
  const py::class_<Label, std::shared_ptr<Label>> label(module, "Label");
  module.def("label", [](const std::string& name) { return std::make_shared<Label>(context_of_rank(), name); });
}

void define_cuda(py::module_& module) {
  module.def("let_cuda_be_cpu", let_cuda_be_cpu);
  module.def("let_cuda_be_device", let_cuda_be_device);
  module.attr("CUDA_MOST") = kCudaMost;
  module.def("begin_cuda_of_rank", begin_cuda_of_rank);
  module.def("use_nccl_of_rank", use_nccl_of_rank);
  module.def("cuda_generator", [] { return cuda_generator(); });
  module.def("current_cuda", [] { return current_cuda(); });
  module.def("set_current_cuda", [](int index) { current_cuda() = index; });
}

}  // namespace

PYBIND11_MODULE(_rehearse, module) {
  py::register_exception<CheckError>(module, "CheckError", PyExc_AssertionError);
  define_set_up(module);
  define_rank(module);
  define_checks(module);
  module.def("run_world", run_world);
  define_cuda(module);
  module.def("run_command", run_command);
  module.def("program_of", program_of);
}

}  // namespace rehearse::python
