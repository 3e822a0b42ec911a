// The profile door.
#include <rushlight/memory.h>
#include <rushlight/profiler.h>

#include <chrono>
#include <memory>

#include "ops/invocation.h"
#include "ops/operator.h"

namespace rushlight::profiler {
namespace {

struct Session {
  Options options;
  std::vector<Event> events;
  int depth = 0;
};

thread_local std::unique_ptr<Session> session;

int64_t now() {
  auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

int64_t live_bytes() {
  return session->options.memory ? memory::statistics().live_bytes : 0;
}

size_t begin(std::string name, bool is_operator) {
  Event event;
  event.name = std::move(name);
  event.depth = session->depth++;
  event.is_operator = is_operator;
  event.bytes = live_bytes();
  session->events.push_back(std::move(event));
  session->events.back().start = now();
  return session->events.size() - 1;
}

// The recording may have ended, or begun anew, inside.
void end(size_t number) {
  int64_t time = now();
  if (session == nullptr || number >= session->events.size()) {
    return;
  }
  Event& event = session->events[number];
  event.end = time;
  event.bytes = live_bytes() - event.bytes;
  --session->depth;
}

void profile_door(Invocation& inv) {
  if (session == nullptr) {
    pass(inv, kProfileDoor);
    return;
  }
  std::string name = inv.op->name();
  name += inv.form == Form::Inplace && name.back() != '_' ? "_" : "";
  size_t number = begin(std::move(name), true);
  if (session->options.shapes) {
    std::vector<IntList>& shapes = session->events[number].shapes;
    for_each_tensor(inv.arguments, inv.argument_count,
                    [&](const Tensor& tensor) { shapes.emplace_back(tensor.sizes()); });
  }
  if (session->options.lines && locate != nullptr) {
    std::string line = locate();  // which may run Python: the session may be over
    if (session != nullptr && number < session->events.size()) {
      session->events[number].lines.push_back(std::move(line));
    }
  }
  struct Finish {
    size_t number;
    ~Finish() { end(number); }
  } finish{number};
  pass(inv, kProfileDoor);
}

const bool installed = (install_door(kProfileDoor, profile_door), true);

}  // namespace

std::string (*locate)() = nullptr;

void start(Options options) {
  if (session != nullptr) {
    fail(ErrorKind::Runtime, "profiler.start", "profiling is on already in this thread");
  }
  session = std::make_unique<Session>();
  session->options = options;
  thread_state.doors |= kProfileDoor;
}

std::vector<Event> stop() {
  thread_state.doors &= ~static_cast<uint32_t>(kProfileDoor);
  if (session == nullptr) {
    return {};
  }
  std::vector<Event> events = std::move(session->events);
  session.reset();
  int64_t time = now();
  for (Event& event : events) {
    event.end = event.end == 0 ? time : event.end;  // still running
  }
  return events;
}

bool is_on() {
  return session != nullptr;
}

int64_t begin_range(const std::string& name) {
  return session == nullptr ? -1 : static_cast<int64_t>(begin(name, false));
}

void end_range(int64_t number) {
  if (number >= 0 && session != nullptr) {
    end(static_cast<size_t>(number));
  }
}

Range::Range(const std::string& name) : number_(begin_range(name)) {}

Range::Range(const std::string& name, std::vector<std::string> lines) : number_(begin_range(name)) {
  if (number_ >= 0) {
    Event& event = session->events[static_cast<size_t>(number_)];
    event.is_kernel = true;
    event.lines = std::move(lines);
  }
}

Range::~Range() {
  end_range(number_);
}

}  // namespace rushlight::profiler
