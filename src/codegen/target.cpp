#include "codegen/target.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>

#include <mutex>
#include <stdexcept>

// Only the parts of each target that emitting an object needs; no parsers, no disassemblers.
extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
void LLVMInitializeAArch64TargetInfo();
void LLVMInitializeAArch64Target();
void LLVMInitializeAArch64TargetMC();
void LLVMInitializeAArch64AsmPrinter();
}

namespace rushlight::codegen {
namespace {

struct TargetText {
  const char* triple;
  const char* cpu;
  const char* features;
};

TargetText text_of(Level level) {
  switch (level) {
    case Level::X86V3:
      return {"x86_64-unknown-linux-gnu", "x86-64-v3", ""};
    case Level::X86V4:
      return {"x86_64-unknown-linux-gnu", "x86-64-v4", "-prefer-256-bit"};
    case Level::AArch64:
      return {"aarch64-unknown-linux-gnu", "generic", "+neon,+outline-atomics"};
  }
  throw std::runtime_error("unknown target level");
}

void initialise_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

}  // namespace

std::unique_ptr<llvm::TargetMachine> make_target(Level level) {
  initialise_llvm();
  TargetText text = text_of(level);
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(text.triple, error);
  if (!target) {
    throw std::runtime_error("LLVM has no target " + std::string(text.triple) + ": " + error);
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.EnableFastISel = false;
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(text.triple, text.cpu, text.features, options, llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!machine) {
    throw std::runtime_error("LLVM cannot make a target machine for " + std::string(text.triple));
  }
  return machine;
}

std::string emit_object(llvm::TargetMachine& target, llvm::Module& module) {
#ifndef NDEBUG
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(module, &problems)) {
    throw std::runtime_error("the lowering made a malformed module: " + problem);
  }
#endif
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (target.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile,
                                 /*DisableVerify=*/true)) {
    throw std::runtime_error("LLVM cannot emit objects for this target");
  }
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

}  // namespace rushlight::codegen
