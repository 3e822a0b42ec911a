// Opening and closing capture from Python, and what runs the segments.
#include "graph/capture.h"

#include "compile/compile.h"
#include "convert.h"
#include "graph/execute.h"
#include "module.h"

namespace rushlight::python {
namespace {

PyObject* make_settings(PyObject*, PyObject* args) {
  const char* backend;
  const char* name;
  int fullgraph;
  if (!PyArg_ParseTuple(args, "ssp:_capture_settings", &backend, &name, &fullgraph)) {
    return nullptr;
  }
  return guarded([&] {
    graph::Settings settings;
    std::string wanted = backend;
    if (wanted == "native") {
      settings.runner = compile::run;
    } else if (wanted == "interpreter") {
      settings.runner = graph::execute;
    } else {
      fail(ErrorKind::Value, "compile", "no such runner: ", wanted);
    }
    settings.fullgraph = fullgraph != 0;
    settings.name = name;
    return PyLong_FromUnsignedLong(graph::register_settings(std::move(settings)));
  });
}

PyObject* open(PyObject*, PyObject* settings) {
  return guarded([&] {
    auto number = static_cast<uint32_t>(int_of(settings, "_capture_open", "settings"));
    return PyBool_FromLong(graph::open_capture(number));
  });
}

PyObject* close(PyObject*, PyObject* failing) {
  return guarded([&] {
    graph::close_capture(failing == Py_True);
    return py_none();
  });
}

PyObject* flush(PyObject*, PyObject*) {
  return guarded([&] {
    graph::flush_capture();
    return py_none();
  });
}

PyObject* active(PyObject*, PyObject*) {
  return PyBool_FromLong(graph::is_capturing());
}

PyObject* statistics(PyObject*, PyObject*) {
  compile::Statistics now = compile::statistics();
  return Py_BuildValue(
      "{sLsLsLsLsLsLsL}", "segments", static_cast<long long>(now.segments), "plans",
      static_cast<long long>(now.plans), "plan_hits", static_cast<long long>(now.plan_hits),
      "nodes", static_cast<long long>(now.nodes), "fused_nodes",
      static_cast<long long>(now.fused_nodes), "fused_kernels",
      static_cast<long long>(now.fused_kernels), "calls", static_cast<long long>(now.calls));
}

PyObject* reset(PyObject*, PyObject*) {
  return guarded([] {
    compile::reset();
    return py_none();
  });
}

PyMethodDef functions[] = {
    {"_compile_statistics", statistics, METH_NOARGS, nullptr},
    {"_compile_reset", reset, METH_NOARGS, nullptr},
    {"_capture_settings", make_settings, METH_VARARGS, nullptr},
    {"_capture_open", open, METH_O, nullptr},
    {"_capture_close", close, METH_O, nullptr},
    {"_capture_flush", flush, METH_NOARGS, nullptr},
    {"_capture_active", active, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  add_functions(module, functions);
}

const Part part(Stage::Rest, fill);

}  // namespace
}  // namespace rushlight::python
