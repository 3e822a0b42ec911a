#include "runtime/kernel_cache.h"

#include <dlfcn.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "codegen/plugin.h"
#include "runtime/compile_workers.h"
#include "runtime/cpu.h"
#include "runtime/kernel_files.h"
#include "runtime/kernel_pack.h"
#include "runtime/log.h"
#include "runtime/object_loader.h"
#include "tensor/storage_bounds.h"

namespace rushlight {

using codegen::Level;
using codegen::Plugin;
using loop::Kernel;
using loop::KernelFunction;

namespace {

// What every object calls its function.
constexpr const char* kSymbol = "rushlight_kernel";

struct Counters {
  std::atomic<int64_t> compiled{0};
  std::atomic<int64_t> disk_hits{0};
  std::atomic<int64_t> pack_hits{0};
};
Counters counters;

std::mutex record_mutex;
std::vector<Kernel>* record = nullptr;

bool flag_set(const char* name) {
  const char* value = std::getenv(name);
  return value && std::strcmp(value, "0") != 0 && *value != 0;
}

void log_kernel(const Kernel& kernel, const char* how, double start) {
  if (is_logged("kernels")) {
    std::fprintf(stderr, "[kernels] %s %s in %.2f ms\n", how, kernel.name.c_str(),
                 now_ms() - start);
  }
}

std::string plugin_path() {
  const char* given = std::getenv("RUSHLIGHT_PLUGIN");
  if (given && *given) {
    return given;
  }
  Dl_info here;
  std::string path = "librushlight_codegen.so";
  if (dladdr(reinterpret_cast<void*>(&get_kernel), &here) && here.dli_fname) {
    std::string own = here.dli_fname;
    size_t slash = own.rfind('/');
    path = slash == std::string::npos ? path : own.substr(0, slash + 1) + path;
  }
  return path;
}

struct OpenedPlugin {
  const Plugin* table = nullptr;
  double milliseconds = 0;
};

// Throws where the plug-in cannot be opened; a later call tries again.
const OpenedPlugin& plugin() {
  static const OpenedPlugin opened = [] {
    double start = now_ms();
    std::string path = plugin_path();
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      fail(ErrorKind::Runtime, "get_kernel", "the code generator cannot be opened: ", dlerror(),
           ". A kernel is needed that the kernel pack does not hold; install "
           "librushlight_codegen.so beside librushlight.so, or set RUSHLIGHT_PLUGIN");
    }
    auto entry = reinterpret_cast<codegen::PluginEntry>(dlsym(library, codegen::kPluginEntry));
    const Plugin* table = entry ? entry() : nullptr;
    if (!table || std::strcmp(table->identity, kernel_code_identity()) != 0) {
      fail(ErrorKind::Runtime, "get_kernel", "the code generator ", path,
           " is of another build than the library");
    }
    const double took = now_ms() - start;
    if (is_logged("kernels")) {
      std::fprintf(stderr, "[kernels] opened the code generator in %.2f ms\n", took);
    }
    return OpenedPlugin{table, took};
  }();
  return opened;
}

Level host_level() {
  CpuLevel level = cpu_level();
  if (level == CpuLevel::base) {
    fail(ErrorKind::NotImplemented, "get_kernel",
         "compiled kernels need a processor of level x86-64-v3 (AVX2, FMA, F16C) or above");
  }
  return level == CpuLevel::v3 ? Level::X86V3 : Level::X86V4;
}

std::string generate(const Kernel& kernel, Level level, bool text) {
  std::string bytes;
  // One sink for both results: which of them it is, is known from the return value.
  codegen::Sink sink = [](void* context, const char* data, size_t size) {
    static_cast<std::string*>(context)->assign(data, size);
  };
  const Plugin* table = plugin().table;
  auto* emit = text ? table->print_ir : table->compile;
  if (!emit(kernel, kSymbol, level, &bytes, sink, sink)) {
    fail(ErrorKind::Runtime, "get_kernel", "kernel ", kernel.name, " cannot be compiled: ", bytes,
         "\n", loop::print(kernel));
  }
  return bytes;
}

KernelFunction load(const std::string& object, std::string* error) {
  return reinterpret_cast<KernelFunction>(load_object(object, kSymbol, error));
}

KernelFunction find_or_compile(const Kernel& kernel, uint64_t key) {
  {
    std::lock_guard lock(record_mutex);
    if (record) {
      record->push_back(kernel);
    }
  }
  static const bool interpret = flag_set("RUSHLIGHT_INTERPRET") || checks_bounds;
  if (interpret) {
    // Function and kernel live as long as the process.
    return make_interpreter_thunk(*new Kernel(kernel));
  }
  double start = now_ms();
  Level level = host_level();
  std::string error;
  std::string object;
  const KernelPack* pack = kernel_pack(level);
  if (pack && pack->read(key, &object)) {
    KernelFunction function = load(object, &error);
    if (!function) {
      fail(ErrorKind::Runtime, "get_kernel", "kernel ", kernel.name,
           " of the library's kernel pack cannot be loaded: ", error);
    }
    ++counters.pack_hits;
    return function;
  }
  if (read_kernel_file(level, key, &object)) {
    if (KernelFunction function = load(object, &error)) {
      ++counters.disk_hits;
      log_kernel(kernel, "read", start);
      return function;
    }
  }
  KernelFunction function = nullptr;
  if (compile_elsewhere(kernel, key, level, &object)) {
    function = load(object, &error);
  }
  if (!function) {
    object = generate(kernel, level, false);
    function = load(object, &error);
  }
  if (!function) {
    fail(ErrorKind::Internal, "get_kernel", "kernel ", kernel.name, " cannot be loaded: ", error);
  }
  write_kernel_file(level, key, object);
  ++counters.compiled;
  log_kernel(kernel, "compiled", start);
  return function;
}

// Kernels found so far. A thread that meets a kernel that another is compiling waits for it.
class Table {
 public:
  KernelFunction find(uint64_t key) {
    std::shared_lock lock(mutex_);
    auto found = functions_.find(key);
    return found == functions_.end() ? nullptr : found->second;
  }

  KernelFunction find_or_make(const Kernel& kernel, uint64_t key) {
    {
      std::unique_lock lock(mutex_);
      for (;;) {
        auto [entry, mine] = functions_.try_emplace(key, nullptr);
        if (mine) {
          break;
        }
        if (entry->second) {
          return entry->second;
        }
        changed_.wait(lock);
      }
    }
    KernelFunction function = nullptr;
    try {
      function = find_or_compile(kernel, key);
    } catch (...) {
      finish(key, nullptr);
      throw;
    }
    finish(key, function);
    return function;
  }

 private:
  void finish(uint64_t key, KernelFunction function) {
    std::unique_lock lock(mutex_);
    if (function) {
      functions_[key] = function;
    } else {
      functions_.erase(key);
    }
    changed_.notify_all();
  }

  std::shared_mutex mutex_;
  std::condition_variable_any changed_;
  std::unordered_map<uint64_t, KernelFunction> functions_;
};

// Never destroyed: other threads may still run kernels while the process exits.
Table& table() {
  static Table* instance = new Table;
  return *instance;
}

Level level_named(const std::string& name) {
  for (int i = 0; i < codegen::kLevelCount; ++i) {
    if (name == codegen::kLevelNames[i]) {
      return static_cast<Level>(i);
    }
  }
  fail(ErrorKind::Value, "kernel_object", "unknown target level ", name);
}

}  // namespace

KernelFunction get_kernel(const Kernel& kernel) {
  uint64_t key = loop::key(kernel);
  KernelFunction function = table().find(key);
  return function ? function : table().find_or_make(kernel, key);
}

void record_kernels(std::vector<Kernel>* into) {
  std::lock_guard lock(record_mutex);
  record = into;
}

KernelCacheStats kernel_cache_stats() {
  return {counters.compiled, counters.disk_hits, counters.pack_hits};
}

std::string kernel_assembly(const Kernel& kernel, const std::string& level) {
  return generate(kernel, level_named(level), true);
}

std::string kernel_object(const Kernel& kernel, const std::string& level) {
  return generate(kernel, level_named(level), false);
}

double open_codegen_plugin() {
  return plugin().milliseconds;
}

}  // namespace rushlight
