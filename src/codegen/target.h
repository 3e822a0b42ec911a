// From a kernel to an LLVM module, and from a module to an object, for any supported target.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/plugin.h"

namespace rushlight::codegen {

// One kernel and the name of its function.
struct Unit {
  const loop::Kernel* kernel;
  std::string symbol;
};

// A target machine for `level`; the first call initialises LLVM. Not to be shared between threads.
std::unique_ptr<llvm::TargetMachine> make_target(Level level);

// Lowers every unit into one module. Throws std::runtime_error where a kernel has no lowering.
std::unique_ptr<llvm::Module> lower(llvm::LLVMContext& context, const llvm::TargetMachine& target,
                                    const std::vector<Unit>& units);

// Runs LLVM's code generator over the module and returns the ELF object.
std::string emit_object(llvm::TargetMachine& target, llvm::Module& module);

struct PackedFunction {
  uint64_t key;
  std::string symbol;
};

// An object that defines `name`, a table of the functions (defined in other objects) by key, in the
// form that runtime/kernel_pack.h reads.
std::string emit_pack_table(llvm::TargetMachine& target, const std::string& name,
                            std::vector<PackedFunction> functions);

}  // namespace rushlight::codegen
