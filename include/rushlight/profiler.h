// Profiling: what operators ran, on what shapes, when, for how long, and what memory they took.
//
//   profiler::start();
//   ... work ...
//   for (const profiler::Event& event : profiler::stop()) { ... }
//
// Events of one thread nest: a composition contains the operators that it calls. Compiled segments
// appear kernel by kernel, each named by its operators, with the lines of the program that called
// for them (of what was captured while a profile was on). Recording is for the thread that starts
// it, and for backward that this thread runs.
#pragma once

#include <rushlight/shape.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rushlight::profiler {

struct Event {
  std::string name;   // "add", "fused: mul+add", or the name of a Range
  int64_t start = 0;  // nanoseconds of a steady clock
  int64_t end = 0;
  int64_t bytes = 0;  // allocated less freed while it ran, where memory is asked for
  int depth = 0;      // of nesting
  bool is_operator = false;
  bool is_kernel = false;       // of a compiled segment
  std::vector<IntList> shapes;  // of the tensor arguments, where asked for
  std::vector<std::string>
      lines;  // of the program: each once, in order; operators: where asked for
};

struct Options {
  bool shapes = false;
  bool memory = false;
  bool lines = false;
};

// Begins on this thread. Error(Runtime) where it has begun.
RUSHLIGHT_API void start(Options options = {});
// Ends on this thread, and gives what was recorded, by start. Empty where nothing had begun.
RUSHLIGHT_API std::vector<Event> stop();
RUSHLIGHT_API bool is_on();
// Where the program is, `File "x.py", line 3, in f`; set by the language that it is written in,
// null where nobody can tell.
RUSHLIGHT_API extern std::string (*locate)();

// An event of your own, for a scope. Costs a test where nothing is recorded.
class RUSHLIGHT_API Range {
 public:
  explicit Range(const std::string& name);
  // A kernel of a compiled segment, and the lines that its operators came from.
  Range(const std::string& name, std::vector<std::string> lines);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  int64_t number_;
};

// The two halves of a Range. The number is -1 where nothing is recorded.
RUSHLIGHT_API int64_t begin_range(const std::string& name);
RUSHLIGHT_API void end_range(int64_t number);

}  // namespace rushlight::profiler
