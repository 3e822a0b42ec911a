// From a kernel to an LLVM module, and from a module to an object, for any supported target.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/plugin.h"

namespace rushlight::codegen {

// One kernel and the name of its function.
struct Unit {
  const loop::Kernel* kernel;
  std::string symbol;
};

// LLVM's code generator for one level, set up once and run on many modules: to set up its passes
// takes as long as to run them on a small kernel. Not to be shared between threads.
class Generator {
 public:
  explicit Generator(Level level);  // the first one initialises LLVM
  ~Generator();

  const llvm::TargetMachine& machine() const { return *machine_; }
  // The module's ELF object.
  std::string emit(llvm::Module& module);

 private:
  struct Passes;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<Passes> passes_;
};

// Lowers every unit into one module. Throws std::runtime_error where a kernel has no lowering.
std::unique_ptr<llvm::Module> lower(llvm::LLVMContext& context, const llvm::TargetMachine& target,
                                    const std::vector<Unit>& units);

// An object that defines `name`, hidden and aligned to eight bytes, as constant bytes.
std::string emit_constant(Generator& generator, const std::string& name, std::string_view bytes);

}  // namespace rushlight::codegen
