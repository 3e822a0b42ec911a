// Segments for back ends written in Python: how one is told from another, its export (from which
// rushlight.fx graphs are built), and its run.
#include "capture.h"
#include "compile/compile.h"
#include "convert.h"
#include "graph/execute.h"
#include "ops/elementwise.h"
#include "ops/operator.h"

namespace rushlight::python {
namespace {

using graph::Graph;
using graph::Node;
using graph::Segment;

constexpr const char* kHelpers = "rushlight._dynamo.segments";

// The values that a back end's callable is given and gives back.
struct Interface {
  std::vector<int> inputs;
  std::vector<int> outputs;  // one a storage that is made here and seen outside
};

// Inputs: of each storage that was there before, and of each dtype in it, the first value that is
// no view made here. Outputs: the value that a storage was made with.
Interface find_interface(const Segment& segment) {
  const Graph& graph = segment.graph;
  Interface found;
  std::vector<bool> known(graph.values.size(), false);
  std::vector<bool> made(graph.storages.size(), false);
  auto is_given = [&](const graph::ValueInfo& value) {
    for (int input : found.inputs) {
      const graph::ValueInfo& other = graph.value(input);
      if (other.storage == value.storage && other.dtype == value.dtype) {
        return true;
      }
    }
    return false;
  };
  auto use = [&](int number) {
    const graph::ValueInfo& value = graph.value(number);
    if (!known[static_cast<size_t>(number)] &&
        graph.storages[static_cast<size_t>(value.storage)].input && !is_given(value)) {
      found.inputs.push_back(number);
    }
    known[static_cast<size_t>(number)] = true;
  };
  for (const Node& node : graph.nodes) {
    for_each_operand(graph, node, use);
    for_each_result(graph, node, [&](int number) {
      auto storage = static_cast<size_t>(graph.value(number).storage);
      if (node.form != Form::Functional) {
        use(number);
      } else if (!graph.storages[storage].input && !made[storage]) {
        made[storage] = true;
        if (segment.is_live(static_cast<int>(storage))) {
          found.outputs.push_back(number);
        }
      }
      known[static_cast<size_t>(number)] = true;
    });
  }
  return found;
}

// ---- Telling structures apart -----------------------------------------------------------------

class Key {
 public:
  template <typename T>
  void add(T word) {
    static_assert(std::is_trivially_copyable_v<T>);
    text_.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  void add_ints(IntArrayRef list) {
    add(list.size());
    for (int64_t item : list) {
      add(item);
    }
  }
  void add_text(std::string_view text) {
    add(text.size());
    text_.append(text);
  }
  void add_value(const Value& value) {
    add(value.tag());
    switch (value.tag()) {
      case Value::Tag::Bool:
      case Value::Tag::Int:
      case Value::Tag::UInt:
        add(value.to_int());
        break;
      case Value::Tag::Float:
        add(value.to_double());
        break;
      case Value::Tag::Ints:
        add_ints(value.ints());
        break;
      case Value::Tag::DType:
        add(value.dtype());
        break;
      case Value::Tag::String:
        add_text(value.text());
        break;
      case Value::Tag::None:
        break;
      default:
        add_object(value);
    }
  }
  std::string take() { return std::move(text_); }

 private:
  // What is rare is told apart by what Python shows of it.
  void add_object(const Value& value) {
    Ref object = owned(to_python(value));
    Ref shown = owned(PyObject_Repr(object.get()));
    add_text(message_text(shown.get()));
    if (value.tag() == Value::Tag::Generator) {
      add(&value.generator().state());
    }
  }

  std::string text_;
};

std::string exact_key(const Segment& segment, const Interface& interface) {
  const Graph& graph = segment.graph;
  Key key;
  for (const graph::StorageInfo& storage : graph.storages) {
    key.add(storage.input);
  }
  for (const graph::ValueInfo& value : graph.values) {
    key.add(value.storage);
    key.add(value.dtype);
    key.add(value.flags);
    key.add(value.offset);
    key.add_ints(value.sizes);
    key.add_ints(value.strides);
  }
  for (const Node& node : graph.nodes) {
    key.add(node.op);
    key.add(node.form);
    for (int i = 0; i < node.slot_count; ++i) {
      const graph::Slot& slot = graph.slot(node, i);
      key.add(slot.count);
      key.add(slot.list);
      if (slot.count < 0) {
        key.add_value(slot.attribute);
      }
    }
    for_each_operand(graph, node, [&](int value) { key.add(value); });
    key.add(-1);
    for_each_result(graph, node, [&](int value) { key.add(value); });
  }
  for (int output : interface.outputs) {
    key.add(output);
  }
  return key.take();
}

// ---- Export -----------------------------------------------------------------------------------

Ref int_list(const std::vector<int>& numbers) {
  Ref list = owned(PyList_New(0));
  for (int number : numbers) {
    Ref item = owned(PyLong_FromLong(number));
    check(PyList_Append(list.get(), item.get()));
  }
  return list;
}

// (name, keyword only, kind, what): a value's number, a list of them, or the argument itself.
// Trailing arguments at their defaults are kept: Python drops what it need not show.
Ref export_argument(const Graph& graph, const graph::Slot& slot, const Argument& declared) {
  Ref what;
  const char* kind = "constant";
  if (slot.count < 0) {
    what = owned(to_python(slot.attribute));
  } else if (slot.list) {
    kind = "list";
    what = int_list(
        {graph.operands.begin() + slot.first, graph.operands.begin() + slot.first + slot.count});
  } else {
    kind = "value";
    what = owned(PyLong_FromLong(graph.operands[static_cast<size_t>(slot.first)]));
  }
  Ref otherwise =
      declared.has_default ? owned(to_python(declared.default_value)) : Ref::share(Py_Ellipsis);
  return owned(Py_BuildValue("(sOsOO)", declared.name.c_str(),
                             declared.keyword_only ? Py_True : Py_False, kind, what.get(),
                             otherwise.get()));
}

Ref export_node(const Graph& graph, const Node& node) {
  Ref arguments = owned(PyList_New(0));
  for (int i = 0; i < node.slot_count; ++i) {
    Ref argument = export_argument(graph, graph.slot(node, i),
                                   node.op->schema.arguments[static_cast<size_t>(i)]);
    check(PyList_Append(arguments.get(), argument.get()));
  }
  std::vector<int> results;
  for (int i = 0; i < node.result_count; ++i) {
    results.push_back(graph.result(node, i));
  }
  Ref made = int_list(results);
  constexpr const char* kForms[] = {"functional", "inplace", "out"};
  const Schema& schema = node.op->schema;
  bool one = schema.results.size() == 1 && !schema.results[0].list;
  const char* line = node.line < 0 ? "" : graph.lines[static_cast<size_t>(node.line)].c_str();
  return owned(Py_BuildValue("(sssOOOs)", schema.name.c_str(),
                             schema.overload.empty() ? "default" : schema.overload.c_str(),
                             kForms[static_cast<int>(node.form)], arguments.get(), made.get(),
                             one ? Py_True : Py_False, line));
}

// (storage, dtype, sizes, strides, offset)
Ref export_value(const graph::ValueInfo& value) {
  Ref sizes = owned(int_tuple(value.sizes));
  Ref strides = owned(int_tuple(value.strides));
  return owned(Py_BuildValue("(iOOOL)", value.storage, dtype_object(value.dtype), sizes.get(),
                             strides.get(), static_cast<long long>(value.offset)));
}

Ref export_segment(const Segment& segment, const Interface& interface, bool backward) {
  const Graph& graph = segment.graph;
  Ref nodes = owned(PyList_New(0));
  for (const Node& node : graph.nodes) {
    Ref item = export_node(graph, node);
    check(PyList_Append(nodes.get(), item.get()));
  }
  Ref values = owned(PyList_New(0));
  for (const graph::ValueInfo& value : graph.values) {
    Ref item = export_value(value);
    check(PyList_Append(values.get(), item.get()));
  }
  Ref inputs = int_list(interface.inputs);
  Ref outputs = int_list(interface.outputs);
  Ref storages = owned(PyList_New(0));
  for (int output : interface.outputs) {
    StorageImpl* storage = segment.storages[static_cast<size_t>(graph.value(output).storage)];
    Ref number = owned(PyLong_FromVoidPtr(storage));
    check(PyList_Append(storages.get(), number.get()));
  }
  return owned(Py_BuildValue("{sOsOsOsOsOsO}", "nodes", nodes.get(), "values", values.get(),
                             "inputs", inputs.get(), "outputs", outputs.get(), "output_storages",
                             storages.get(), "backward", backward ? Py_True : Py_False));
}

// ---- Run --------------------------------------------------------------------------------------

Ref input_tensors(const Segment& segment, const Interface& interface) {
  Ref list = owned(PyList_New(0));
  for (int input : interface.inputs) {
    Ref tensor = owned(wrap(graph::tensor_of(segment, input)));
    check(PyList_Append(list.get(), tensor.get()));
  }
  return list;
}

[[noreturn]] void refuse(const Compiled& compiled, const std::string& text) {
  Ref helpers = owned(PyImport_ImportModule(kHelpers));
  owned(PyObject_CallMethod(helpers.get(), "wrong_result", "Os", compiled.backend, text.c_str()));
  fail(ErrorKind::Internal, "compile", text);
}

void check_shape(const Compiled& compiled, const graph::ValueInfo& wanted, PyObject* made, int at) {
  std::string what = cat("result ", at, " of the back end's callable");
  if (!is_tensor(made)) {
    refuse(compiled, cat(what, " is a ", type_name(made), ", not a tensor"));
  }
  const Tensor& tensor = tensor_of(made);
  if (tensor.dtype() != wanted.dtype || !(tensor.sizes() == IntArrayRef(wanted.sizes))) {
    refuse(compiled, cat(what, " has dtype ", tensor.dtype(), " and shape ", tensor.sizes(),
                         ", the graph's has ", wanted.dtype, " and ", IntArrayRef(wanted.sizes)));
  }
}

// Takes the results. One that somebody else holds too is copied: its memory is not ours.
void take_results(const Compiled& compiled, Segment& segment, const Interface& interface,
                  Ref results) {
  Ref items = owned(PySequence_List(results.get()));
  results = Ref();
  auto count = static_cast<size_t>(PyList_GET_SIZE(items.get()));
  if (count != interface.outputs.size()) {
    refuse(compiled, cat("the back end's callable gave ", count, " results, the graph has ",
                         interface.outputs.size()));
  }
  for (size_t i = 0; i < count; ++i) {
    int value = interface.outputs[i];
    const graph::ValueInfo& info = segment.graph.value(value);
    PyObject* made = PyList_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i));
    check_shape(compiled, info, made, static_cast<int>(i));
    const Tensor& tensor = tensor_of(made);
    StorageImpl* storage = segment.storages[static_cast<size_t>(info.storage)];
    if (Py_REFCNT(made) == 1 && tensor.impl()->references.load(std::memory_order_acquire) == 1) {
      graph::adopt_result(segment, value, tensor);
    } else {
      graph::allocate_storage(storage);
      assign(graph::tensor_of(segment, value), tensor);
    }
  }
}

}  // namespace

void run_foreign(Compiled& compiled, Segment& segment, bool (*may_compile)(Compiled&),
                 bool backward) {
  Interface interface = find_interface(segment);
  std::string key = exact_key(segment, interface);
  auto found = compiled.callables.find(key);
  Ref inputs = input_tensors(segment, interface);
  if (found == compiled.callables.end()) {
    if (!may_compile(compiled)) {
      graph::execute(segment);
      return;
    }
    Ref exported = export_segment(segment, interface, backward);
    Ref callable = owned(
        PyObject_CallFunctionObjArgs(compiled.backend, exported.get(), inputs.get(), nullptr));
    found = compiled.callables.emplace(std::move(key), callable.release()).first;
  }
  if (PyUnicode_Check(found->second)) {
    // The back end leaves it to us.
    bool native = text_of(found->second) == "native";
    inputs = Ref();
    GilRelease unlocked;
    native ? compiler::run(segment) : graph::execute(segment);
    return;
  }
  Ref arguments = owned(PyList_AsTuple(inputs.get()));
  Ref results = owned(PyObject_CallObject(found->second, arguments.get()));
  if (!PyList_Check(results.get()) && !PyTuple_Check(results.get())) {
    refuse(compiled, cat("the back end's callable gave a ", type_name(results.get()),
                         ", not a tuple or list of tensors"));
  }
  take_results(compiled, segment, interface, std::move(results));
}

}  // namespace rushlight::python
