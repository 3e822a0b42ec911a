#include "runtime/compile_workers.h"

#include <dlfcn.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "runtime/kernel_cache.h"
#include "runtime/kernel_files.h"
#include "runtime/log.h"

extern char** environ;

namespace rushlight {
namespace {

// Where a worker finds its end of the socket.
constexpr int kWorkerSocket = 3;
constexpr int kMostLost = 3;
constexpr uint64_t kMostBytes = uint64_t{1} << 28;

// Both ways: a request's value is the kernel's key, an answer's whether it holds an object.
struct Message {
  uint64_t size;
  uint64_t value;
  uint64_t level;
};

bool send_all(int socket, const void* bytes, size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    // Without the signal that writing to a dead worker would raise.
    ssize_t done = send(socket, at, size, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) {
      continue;
    }
    if (done <= 0) {
      return false;
    }
    at += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

// `deadline` in milliseconds of now_ms; 0: none.
bool receive_all(int socket, void* bytes, size_t size, double deadline) {
  char* at = static_cast<char*>(bytes);
  while (size > 0) {
    if (deadline > 0) {
      pollfd waiting{socket, POLLIN, 0};
      const double left = deadline - now_ms();
      int ready = left > 0 ? poll(&waiting, 1, static_cast<int>(left) + 1) : 0;
      if (ready < 0 && errno == EINTR) {
        continue;
      }
      if (ready <= 0) {
        return false;
      }
    }
    ssize_t done = recv(socket, at, size, 0);
    if (done < 0 && errno == EINTR) {
      continue;
    }
    if (done <= 0) {
      return false;
    }
    at += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

bool send_text(int socket, uint64_t value, codegen::Level level, const std::string& text) {
  Message head{text.size(), value, static_cast<uint64_t>(level)};
  return send_all(socket, &head, sizeof(head)) && send_all(socket, text.data(), text.size());
}

bool receive_text(int socket, Message* head, std::string* text, double deadline) {
  if (!receive_all(socket, head, sizeof(*head), deadline) || head->size > kMostBytes) {
    return false;
  }
  text->resize(head->size);
  return receive_all(socket, text->data(), text->size(), deadline);
}

std::string worker_path() {
  const char* given = std::getenv("RUSHLIGHT_WORKER");
  if (given != nullptr && *given != 0) {
    return given;
  }
  Dl_info here;
  std::string path = "rushlight-compile";
  if (dladdr(reinterpret_cast<void*>(&set_compile_workers), &here) != 0 && here.dli_fname) {
    std::string own = here.dli_fname;
    size_t slash = own.rfind('/');
    path = slash == std::string::npos ? "./" + path : own.substr(0, slash + 1) + path;
  }
  return path;
}

double patience_ms() {
  static const double chosen = [] {
    const char* given = std::getenv("RUSHLIGHT_WORKER_TIMEOUT");
    double seconds = given != nullptr ? std::atof(given) : 0;
    return 1000 * (seconds > 0 ? seconds : 60);
  }();
  return chosen;
}

struct Worker {
  pid_t process = -1;
  int socket = -1;
};

// Gives why it cannot be started; empty where it was.
std::string start(Worker* worker) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return std::strerror(errno);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // The copy stays open in the worker, which needs it at a number it knows. Where the end has that
  // number already, the call takes its close-on-exec flag off (glibc 2.29 and later).
  posix_spawn_file_actions_adddup2(&actions, ends[1], kWorkerSocket);
  std::string path = worker_path();
  char* arguments[] = {path.data(), nullptr};
  int failed = posix_spawn(&worker->process, path.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    return cat(path, ": ", std::strerror(failed));
  }
  worker->socket = ends[0];
  return "";
}

void end(const Worker& worker) {
  close(worker.socket);
  kill(worker.process, SIGKILL);
  waitpid(worker.process, nullptr, 0);
}

int64_t wanted_at_start() {
  const char* given = std::getenv("RUSHLIGHT_COMPILE_WORKERS");
  int64_t count = given != nullptr ? std::atoll(given) : 0;
  return count > 0 && count <= 256 ? count : 0;
}

class Pool {
 public:
  void resize(int64_t count) {
    std::vector<Worker> ended;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      wanted_ = count;
      while (!idle_.empty() && live_ > wanted_) {
        ended.push_back(idle_.back());
        idle_.pop_back();
        --live_;
      }
    }
    for (const Worker& worker : ended) {
      end(worker);
    }
    changed_.notify_all();
  }

  int64_t wanted() const { return wanted_.load(std::memory_order_relaxed); }

  // A worker for this thread alone; false where there is none to be had.
  bool take(Worker* worker) {
    std::unique_lock<std::mutex> lock(mutex_);
    forget_workers_of_parent();
    for (;;) {
      if (wanted_ == 0 || lost_ >= kMostLost) {
        return false;
      }
      if (!idle_.empty()) {
        *worker = idle_.back();
        idle_.pop_back();
        return true;
      }
      if (live_ < wanted_) {
        std::string failure = start(worker);
        if (failure.empty()) {
          ++live_;
          ++started_;
          return true;
        }
        lost_ = kMostLost;
        lock.unlock();
        warn(cat("kernels are compiled in this process: a compile worker cannot be started: ",
                 failure));
        return false;
      }
      changed_.wait(lock);
    }
  }

  void give_back(const Worker& worker) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ++compiled_;
      if (live_ <= wanted_) {
        idle_.push_back(worker);
        changed_.notify_one();
        return;
      }
      --live_;
    }
    end(worker);
  }

  void lose(const Worker& worker, const std::string& kernel) {
    int64_t lost;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      --live_;
      lost = ++lost_;
    }
    end(worker);
    changed_.notify_all();
    warn(cat("a compile worker died, or gave no answer, over the kernel ", kernel,
             ": it is compiled in this process",
             lost >= kMostLost ? "; so are all from now on" : ""));
  }

  CompileWorkerStats stats() {
    std::lock_guard<std::mutex> lock(mutex_);
    return {started_, compiled_, lost_};
  }

 private:
  // A forked child must not talk to its parent's workers.
  void forget_workers_of_parent() {
    if (owner_ == getpid()) {
      return;
    }
    for (const Worker& worker : idle_) {
      close(worker.socket);
    }
    idle_.clear();
    live_ = 0;
    owner_ = getpid();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int64_t> wanted_{wanted_at_start()};
  int64_t live_ = 0;
  int64_t started_ = 0;
  int64_t compiled_ = 0;
  int64_t lost_ = 0;
  pid_t owner_ = getpid();
  std::vector<Worker> idle_;
};

// Never destroyed: other threads may still compile while the process exits.
Pool& pool() {
  static auto* made = new Pool;
  return *made;
}

}  // namespace

void set_compile_workers(int64_t count) {
  if (count < 0 || count > 256) {
    fail(ErrorKind::Value, "compile", "the number of compile workers must be from 0 to 256, got ",
         count);
  }
  pool().resize(count);
}

int64_t compile_workers() {
  return pool().wanted();
}

CompileWorkerStats compile_worker_stats() {
  return pool().stats();
}

bool compile_elsewhere(const loop::Kernel& kernel, uint64_t key, codegen::Level level,
                       std::string* object) {
  Worker worker;
  if (pool().wanted() == 0 || !pool().take(&worker)) {
    return false;
  }
  Message head{};
  if (!send_text(worker.socket, key, level, loop::print(kernel)) ||
      !receive_text(worker.socket, &head, object, now_ms() + patience_ms())) {
    pool().lose(worker, kernel.name);
    return false;
  }
  pool().give_back(worker);
  return head.value == 1;
}

void serve_compilations(int socket) {
  Message head{};
  std::string text;
  while (receive_text(socket, &head, &text, 0)) {
    std::string object;
    uint64_t good = 0;
    try {
      auto level = static_cast<codegen::Level>(head.level % codegen::kLevelCount);
      loop::Kernel kernel = loop::parse(text);
      // Another process may have compiled it meanwhile.
      if (loop::key(kernel) == head.value) {
        if (!read_kernel_file(level, head.value, &object)) {
          object = kernel_object(kernel, codegen::kLevelNames[head.level % codegen::kLevelCount]);
        }
        good = 1;
      }
    } catch (const std::exception& error) {
      object = error.what();
    }
    if (!send_text(socket, good, codegen::Level::X86V3, object)) {
      return;
    }
  }
}

}  // namespace rushlight
