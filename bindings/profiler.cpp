// The core's profiler for Python.
#include <rushlight/profiler.h>

#include "convert.h"
#include "module.h"

namespace rushlight::python {
namespace {

PyObject* start(PyObject*, PyObject* args) {
  int shapes;
  int memory;
  int lines = 0;
  if (!PyArg_ParseTuple(args, "pp|p:_profiler_start", &shapes, &memory, &lines)) {
    return nullptr;
  }
  return guarded([&] {
    profiler::start({shapes != 0, memory != 0, lines != 0});
    return py_none();
  });
}

PyObject* shapes_of(const profiler::Event& event) {
  Ref list = owned(PyList_New(0));
  for (const IntList& shape : event.shapes) {
    Ref sizes = owned(PyList_New(0));
    for (int64_t size : shape) {
      Ref number = owned(PyLong_FromLongLong(size));
      check(PyList_Append(sizes.get(), number.get()));
    }
    check(PyList_Append(list.get(), sizes.get()));
  }
  return list.release();
}

PyObject* lines_of(const profiler::Event& event) {
  Ref list = owned(PyList_New(0));
  for (const std::string& line : event.lines) {
    Ref text = owned(PyUnicode_FromString(line.c_str()));
    check(PyList_Append(list.get(), text.get()));
  }
  return list.release();
}

// Tuples of name, start, end, bytes, depth, is_operator, shapes, is_kernel, lines.
PyObject* stop(PyObject*, PyObject*) {
  return guarded([] {
    std::vector<profiler::Event> events = profiler::stop();
    Ref list = owned(PyList_New(0));
    for (const profiler::Event& event : events) {
      Ref item = owned(
          Py_BuildValue("(sLLLiNNNN)", event.name.c_str(), static_cast<long long>(event.start),
                        static_cast<long long>(event.end), static_cast<long long>(event.bytes),
                        event.depth, PyBool_FromLong(event.is_operator), shapes_of(event),
                        PyBool_FromLong(event.is_kernel), lines_of(event)));
      check(PyList_Append(list.get(), item.get()));
    }
    return list.release();
  });
}

PyObject* is_on(PyObject*, PyObject*) {
  return PyBool_FromLong(profiler::is_on());
}

PyObject* begin_range(PyObject*, PyObject* name) {
  return guarded(
      [&] { return PyLong_FromLongLong(profiler::begin_range(std::string(text_of(name)))); });
}

PyObject* end_range(PyObject*, PyObject* number) {
  return guarded([&] {
    profiler::end_range(int_of(number, "_profiler_end_range", "number"));
    return py_none();
  });
}

PyMethodDef functions[] = {
    {"_profiler_start", start, METH_VARARGS, nullptr},
    {"_profiler_stop", stop, METH_NOARGS, nullptr},
    {"_profiler_is_on", is_on, METH_NOARGS, nullptr},
    {"_profiler_begin_range", begin_range, METH_O, nullptr},
    {"_profiler_end_range", end_range, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  add_functions(module, functions);
}

const Part part(Stage::Rest, fill);

}  // namespace
}  // namespace rushlight::python
