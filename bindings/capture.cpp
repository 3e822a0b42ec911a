// Opening and closing capture from Python, and what runs the segments.
#include "capture.h"

#include <rushlight/profiler.h>

#include <mutex>
#include <unordered_map>

#include "compile/compile.h"
#include "compile/passes.h"
#include "convert.h"
#include "graph/execute.h"
#include "module.h"
#include "ops/operator.h"
#include "runtime/compile_workers.h"
#include "runtime/kernel_cache.h"
#include "runtime/log.h"

namespace rushlight::python {
namespace {

// What torch.compiler.set_stance asks of segments that have no plan yet.
enum class Stance : int { Compile, Eager, Fail };
std::atomic<int> stance{static_cast<int>(Stance::Compile)};

// Whether this thread's capture was opened by a call in Python, not by backward.
thread_local bool called = false;
// Whether breaks are errors on this thread, whatever fullgraph says.
thread_local bool strict = false;
// Of the call that opened this thread's capture.
thread_local uint32_t opened_by = 0;
// How many of that call's segments have run: where in the call the next one starts.
thread_local int place = 0;

constexpr const char* kHelpers = "rushlight._dynamo.segments";

void report(const Compiled& compiled, const graph::Segment& segment) {
  Ref names = owned(PyList_New(0));
  for (const graph::Node& node : segment.graph.nodes) {
    std::string text = node.op->schema.full_name();
    Ref name = owned(PyUnicode_FromString(text.c_str()));
    check(PyList_Append(names.get(), name.get()));
  }
  constexpr const char* kReasons[] = {"close", "value", "operator"};
  owned(PyObject_CallFunction(compiled.observer, "ssOO", kReasons[static_cast<int>(segment.reason)],
                              segment.what.c_str(), names.get(), called ? Py_True : Py_False));
}

// A new structure: whether it may be compiled, by the stance and the limit.
bool may_compile(Compiled& compiled) {
  switch (static_cast<Stance>(stance.load(std::memory_order_relaxed))) {
    case Stance::Eager:
      return false;
    case Stance::Fail:
      fail(ErrorKind::Runtime, "",
           "Detected recompile when torch.compile stance is 'fail_on_recompile': ", compiled.name,
           " met a graph of a structure that has no plan");
    case Stance::Compile:
      break;
  }
  const bool within = compiled.limit < 0 || compiled.plans.fetch_add(1) < compiled.limit;
  const bool again = called && compiled.note_plan(place);
  if (within && !again) {
    return true;
  }
  GilAcquire locked;
  Ref helpers = owned(PyImport_ImportModule(kHelpers));
  const Ref allowed =
      owned(PyObject_CallMethod(helpers.get(), "may_recompile", "sLOO", compiled.name.c_str(),
                                static_cast<long long>(compiled.limit), within ? Py_False : Py_True,
                                compiled.fullgraph ? Py_True : Py_False));
  return allowed.get() == Py_True;
}

// An error where a graph may not end before the function does.
void refuse_break(const Compiled& compiled, const std::string& what) {
  if ((compiled.fullgraph || strict) && called) {
    GilAcquire locked;
    Ref helpers = owned(PyImport_ImportModule(kHelpers));
    owned(PyObject_CallMethod(helpers.get(), "fullgraph_break", "ss", compiled.name.c_str(),
                              what.c_str()));
  }
}

void run_compiled(Compiled& compiled, graph::Segment& segment) {
  if (segment.reason == graph::Break::Value) {
    refuse_break(compiled, segment.what);
  }
  if (compiled.observer != nullptr) {
    GilAcquire locked;
    report(compiled, segment);
  }
  struct NextPlace {
    ~NextPlace() { place += called ? 1 : 0; }
  } next;
  if (compiled.backend != nullptr) {
    GilAcquire locked;
    run_foreign(compiled, segment, may_compile, !called);
    return;
  }
  GilRelease unlocked(PyGILState_Check() != 0);
  if (compiled.interprets || (!compiler::is_planned(segment) && !may_compile(compiled))) {
    graph::execute(segment);
  } else {
    compiler::run(segment);
  }
}

// torch._dynamo.config.suppress_errors
bool suppress(const Error& error) {
  GilAcquire locked;
  Ref config = owned(PyImport_ImportModule("rushlight._dynamo.config"));
  Ref wanted = owned(PyObject_GetAttrString(config.get(), "suppress_errors"));
  if (PyObject_IsTrue(wanted.get()) != 1) {
    return false;
  }
  warn(cat("the compiler failed, so the graph runs operator by operator: ", error.what()));
  return true;
}

// Whether a file is of this package, whose lines are nobody's own.
bool is_ours(PyCodeObject* code) {
  static const std::string* package = [] {
    Ref module = owned(PyImport_ImportModule("rushlight"));
    Ref file = owned(PyObject_GetAttrString(module.get(), "__file__"));
    std::string path(message_text(file.get()));
    return new std::string(path.substr(0, path.find_last_of('/') + 1));
  }();
  Ref file = owned(PyObject_GetAttrString(reinterpret_cast<PyObject*>(code), "co_filename"));
  return message_text(file.get()).starts_with(*package);
}

// `File "x.py", line 3, in f`: the program's innermost line.
std::string locate() {
  GilAcquire locked;
  Ref frame = Ref::share(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* at = reinterpret_cast<PyFrameObject*>(frame.get());
    Ref code(reinterpret_cast<PyObject*>(PyFrame_GetCode(at)));
    auto* found = reinterpret_cast<PyCodeObject*>(code.get());
    if (!is_ours(found)) {
      Ref file = owned(PyObject_GetAttrString(code.get(), "co_filename"));
      Ref name = owned(PyObject_GetAttrString(code.get(), "co_name"));
      return cat("File \"", message_text(file.get()), "\", line ", PyFrame_GetLineNumber(at),
                 ", in ", message_text(name.get()));
    }
    frame = Ref(reinterpret_cast<PyObject*>(PyFrame_GetBack(at)));
  }
  return "";
}

struct KnownSettings {
  std::mutex mutex;
  std::unordered_map<uint32_t, const Compiled*> by_number;
};

KnownSettings& known_settings() {
  static auto* known = new KnownSettings;
  return *known;
}

void keep_settings(uint32_t number, const Compiled* compiled) {
  KnownSettings& known = known_settings();
  std::lock_guard lock(known.mutex);
  known.by_number[number] = compiled;
}

const Compiled* settings_at(uint32_t number) {
  KnownSettings& known = known_settings();
  std::lock_guard lock(known.mutex);
  return known.by_number.at(number);
}

PyObject* make_settings(PyObject*, PyObject* args) {
  PyObject* runner;
  const char* name;
  int fullgraph;
  long long limit = -1;
  PyObject* observer = Py_None;
  double budget = 1;
  if (!PyArg_ParseTuple(args, "Osp|LOd:_capture_settings", &runner, &name, &fullgraph, &limit,
                        &observer, &budget)) {
    return nullptr;
  }
  return guarded([&] {
    auto* compiled = new Compiled;  // settings are kept for ever
    compiled->name = name;
    compiled->fullgraph = fullgraph != 0;
    compiled->limit = limit;
    compiled->observer = observer == Py_None ? nullptr : new_ref(observer);
    if (PyCallable_Check(runner)) {
      compiled->backend = new_ref(runner);
    } else {
      std::string_view wanted = text_of(runner);
      compiled->interprets = wanted == "interpreter";
      if (!compiled->interprets && wanted != "native") {
        fail(ErrorKind::Value, "compile", "no such runner: ", wanted);
      }
    }
    graph::Settings settings;
    settings.name = name;
    settings.foreign = compiled->backend != nullptr;
    if (!settings.foreign && !compiled->interprets) {
      settings.activation_memory_budget = budget;
    }
    if (settings.foreign) {
      settings.locate = locate;
    }
    settings.runner = [compiled](graph::Segment& segment) { run_compiled(*compiled, segment); };
    const uint32_t number = graph::register_settings(std::move(settings));
    keep_settings(number, compiled);
    return PyLong_FromUnsignedLong(number);
  });
}

PyObject* open(PyObject*, PyObject* settings) {
  return guarded([&] {
    auto number = static_cast<uint32_t>(int_of(settings, "_capture_open", "settings"));
    bool opened = graph::open_capture(number);
    if (opened) {
      called = true;
      opened_by = number;
      place = 0;
    }
    return PyBool_FromLong(opened);
  });
}

PyObject* close(PyObject*, PyObject* failing) {
  struct NotCalled {
    ~NotCalled() { called = false; }
  };
  return guarded([&] {
    NotCalled at_end;
    graph::close_capture(failing == Py_True);
    return py_none();
  });
}

// What is pending runs, and capture stays off until it is resumed with the number given back.
PyObject* suspend(PyObject*, PyObject* what) {
  return guarded([&] { return PyLong_FromUnsignedLong(graph::suspend_capture(text_of(what))); });
}

PyObject* resume(PyObject*, PyObject* suspended) {
  return guarded([&] {
    auto number = static_cast<uint32_t>(int_of(suspended, "_capture_resume", "suspended"));
    graph::resume_capture(number);
    return py_none();
  });
}

PyObject* flush(PyObject*, PyObject* what) {
  return guarded([&] {
    graph::flush_capture(text_of(what));
    return py_none();
  });
}

// Before a break that the program asks for: it is one even where nothing has been captured yet.
PyObject* announce_break(PyObject*, PyObject* what) {
  return guarded([&] {
    if (called && graph::is_capturing()) {
      refuse_break(*settings_at(opened_by), std::string(text_of(what)));
    }
    return py_none();
  });
}

PyObject* active(PyObject*, PyObject*) {
  return PyBool_FromLong(graph::is_capturing());
}

// A number for the memory of a tensor, whether or not it is there yet; two tensors that share it
// agree.
PyObject* storage_id(PyObject*, PyObject* tensor) {
  return guarded([&] {
    if (!is_tensor(tensor)) {
      fail(ErrorKind::Type, "_storage_id", "expected a Tensor, got ", type_name(tensor));
    }
    return PyLong_FromVoidPtr(tensor_of(tensor).storage());
  });
}

PyObject* set_log_topics_of(PyObject*, PyObject* topics) {
  return guarded([&] {
    set_log_topics(text_of(topics));
    return py_none();
  });
}

PyObject* get_log_topics(PyObject*, PyObject*) {
  return guarded([] {
    std::string topics(log_topics());
    return check(PyUnicode_FromString(topics.c_str()));
  });
}

PyObject* set_stance(PyObject*, PyObject* wanted) {
  return guarded([&] {
    stance = static_cast<int>(int_of(wanted, "_compile_stance", "stance"));
    return py_none();
  });
}

// Gives what it was before.
PyObject* set_strict(PyObject*, PyObject* wanted) {
  return PyBool_FromLong(std::exchange(strict, wanted == Py_True));
}

PyObject* statistics(PyObject*, PyObject*) {
  compiler::Statistics now = compiler::statistics();
  return Py_BuildValue(
      "{sLsLsLsLsLsLsLsLsL}", "segments", static_cast<long long>(now.segments), "plans",
      static_cast<long long>(now.plans), "plan_hits", static_cast<long long>(now.plan_hits),
      "nodes", static_cast<long long>(now.nodes), "fused_nodes",
      static_cast<long long>(now.fused_nodes), "fused_kernels",
      static_cast<long long>(now.fused_kernels), "calls", static_cast<long long>(now.calls),
      "remade", static_cast<long long>(now.remade), "remade_bytes",
      static_cast<long long>(now.remade_bytes));
}

PyObject* reset(PyObject*, PyObject*) {
  return guarded([] {
    compiler::reset();
    return py_none();
  });
}

// A segment of this thread's may be running on another, which needs the interpreter to go on.
void wait_unlocked(std::mutex& mutex) {
  GilRelease unlocked(PyGILState_Check() != 0);
  mutex.lock();
}

PyObject* kernel_statistics(PyObject*, PyObject*) {
  KernelCacheStats now = kernel_cache_stats();
  CompileWorkerStats workers = compile_worker_stats();
  return Py_BuildValue("{sLsLsLsLsLsL}", "compiled", static_cast<long long>(now.compiled),
                       "disk_hits", static_cast<long long>(now.disk_hits), "pack_hits",
                       static_cast<long long>(now.pack_hits), "compiled_by_workers",
                       static_cast<long long>(workers.compiled), "workers_started",
                       static_cast<long long>(workers.started), "workers_lost",
                       static_cast<long long>(workers.lost));
}

// Gives how many compile workers there are to be; sets it where a number is given.
PyObject* set_workers(PyObject*, PyObject* args) {
  PyObject* wanted = nullptr;
  if (!PyArg_ParseTuple(args, "|O:_compile_workers", &wanted)) {
    return nullptr;
  }
  return guarded([&] {
    if (wanted != nullptr) {
      set_compile_workers(int_of(wanted, "_compile_workers", "count"));
    }
    return PyLong_FromLongLong(compile_workers());
  });
}

PyObject* pass_names(PyObject*, PyObject*) {
  return guarded([] {
    const auto& passes = compiler::all_passes();
    Ref list = owned(PyList_New(0));
    for (const compiler::Pass& pass : passes) {
      Ref name = owned(PyUnicode_FromString(std::string(pass.name).c_str()));
      check(PyList_Append(list.get(), name.get()));
    }
    return list.release();
  });
}

PyObject* enter_budget(PyObject*, PyObject* budget) {
  return guarded([&] {
    const double wanted = PyFloat_AsDouble(budget);
    if (wanted == -1.0 && PyErr_Occurred()) {
      throw PythonError();
    }
    return PyLong_FromUnsignedLong(graph::enter_budget(wanted));
  });
}

PyObject* leave_budget(PyObject*, PyObject* before) {
  return guarded([&] {
    graph::leave_budget(static_cast<uint32_t>(int_of(before, "_capture_leave_budget", "before")));
    return py_none();
  });
}

PyMethodDef functions[] = {
    {"_compile_passes", pass_names, METH_NOARGS, nullptr},
    {"_kernel_cache_stats", kernel_statistics, METH_NOARGS, nullptr},
    {"_compile_statistics", statistics, METH_NOARGS, nullptr},
    {"_storage_id", storage_id, METH_O, nullptr},
    {"_set_log_topics", set_log_topics_of, METH_O, nullptr},
    {"_log_topics", get_log_topics, METH_NOARGS, nullptr},
    {"_compile_workers", set_workers, METH_VARARGS, nullptr},
    {"_compile_reset", reset, METH_NOARGS, nullptr},
    {"_compile_stance", set_stance, METH_O, nullptr},
    {"_compile_strict", set_strict, METH_O, nullptr},
    {"_capture_settings", make_settings, METH_VARARGS, nullptr},
    {"_capture_open", open, METH_O, nullptr},
    {"_capture_close", close, METH_O, nullptr},
    {"_capture_suspend", suspend, METH_O, nullptr},
    {"_capture_resume", resume, METH_O, nullptr},
    {"_capture_flush", flush, METH_O, nullptr},
    {"_capture_announce_break", announce_break, METH_O, nullptr},
    {"_capture_enter_budget", enter_budget, METH_O, nullptr},
    {"_capture_leave_budget", leave_budget, METH_O, nullptr},
    {"_capture_active", active, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  graph::wait_for_segment = wait_unlocked;
  profiler::locate = locate;
  compiler::suppress_failure = suppress;
  add_functions(module, functions);
}

const Part part(Stage::Rest, fill);

}  // namespace
}  // namespace rushlight::python
