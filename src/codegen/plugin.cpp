#include "codegen/plugin.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/raw_ostream.h>

#include <exception>
#include <memory>
#include <string>

#include "codegen/target.h"
#include "codegen_identity.h"

namespace rushlight::codegen {
namespace {

// Generators are costly to make and must not be shared, so each thread keeps its own.
Generator& generator_of(Level level) {
  thread_local std::unique_ptr<Generator> generators[kLevelCount];
  std::unique_ptr<Generator>& generator = generators[static_cast<int>(level)];
  if (!generator) {
    generator = std::make_unique<Generator>(level);
  }
  return *generator;
}

template <typename F>
bool guarded(void* context, Sink error, F&& body) {
  try {
    body();
    return true;
  } catch (const std::exception& e) {
    std::string text = e.what();
    error(context, text.data(), text.size());
    return false;
  }
}

bool compile(const loop::Kernel& kernel, const char* symbol, Level level, void* context,
             Sink object, Sink error) {
  return guarded(context, error, [&] {
    llvm::LLVMContext llvm_context;
    Generator& generator = generator_of(level);
    std::unique_ptr<llvm::Module> module =
        lower(llvm_context, generator.machine(), {{&kernel, symbol}});
    std::string bytes = generator.emit(*module);
    object(context, bytes.data(), bytes.size());
  });
}

bool print_ir(const loop::Kernel& kernel, const char* symbol, Level level, void* context, Sink text,
              Sink error) {
  return guarded(context, error, [&] {
    llvm::LLVMContext llvm_context;
    std::unique_ptr<llvm::Module> module =
        lower(llvm_context, generator_of(level).machine(), {{&kernel, symbol}});
    std::string out;
    llvm::raw_string_ostream stream(out);
    module->print(stream, nullptr);
    text(context, out.data(), out.size());
  });
}

}  // namespace
}  // namespace rushlight::codegen

extern "C" __attribute__((visibility("default"))) const rushlight::codegen::Plugin*
rushlight_codegen_plugin() {
  static const rushlight::codegen::Plugin plugin = {
      RUSHLIGHT_CODEGEN_IDENTITY, rushlight::codegen::compile, rushlight::codegen::print_ir};
  return &plugin;
}
