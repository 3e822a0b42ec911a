// What a call of torch.compile asked for, and the running of its segments by a Python back end.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "graph/capture.h"
#include "py.h"

namespace rushlight::python {

struct Compiled {
  std::string name;
  bool fullgraph = false;
  bool interprets = false;       // operator by operator
  long long limit = -1;          // of structures compiled; -1: none
  PyObject* observer = nullptr;  // called before each segment runs
  // backend(exported segment, example inputs) gives the callable that runs segments like it; null:
  // the compiler of src/compile, or the interpreter.
  PyObject* backend = nullptr;
  std::atomic<long long> plans{0};
  std::mutex mutex;
  std::unordered_set<int> planned;  // segments of a call that have a plan, by their number in it

  // Notes a plan for a segment of a call; gives whether there was one already.
  bool note_plan(int place) {
    const std::lock_guard lock(mutex);
    return !planned.insert(place).second;
  }
  std::unordered_map<std::string, PyObject*> callables;  // of the back end, by exact structure
};

// Runs the segment by the back end, which compiles it where it is new and `may_compile` lets it.
// The interpreter's lock is held.
void run_foreign(Compiled& compiled, graph::Segment& segment, bool (*may_compile)(Compiled&),
                 bool backward);

}  // namespace rushlight::python
