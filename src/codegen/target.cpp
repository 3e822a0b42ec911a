#include "codegen/target.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Pass.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string_view>

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

std::unique_ptr<llvm::TargetMachine> make_machine(Level level) {
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

// Passes that find nothing to do in our code, by name; those of all targets in one list, since a
// name that does not occur costs nothing. To see which change a kernel: leave one out and compare
// objects.
constexpr std::string_view kIdle[] = {
    "Analyze Machine Code For Garbage Collection",
    "Argument Stack Rebase",
    "Canonicalize Freeze Instructions in Loops",
    "Check CFA info and insert CFI instructions if needed",
    "Contiguously Lay Out Funclets",
    "Detect Dead Lanes",
    "Early If-Conversion",
    "Early Tail Duplication",
    "Exception handling preparation",
    "Expand Atomic instructions",
    "Expand indirectbr instructions",
    "Expand large div/rem",
    "Expand large fp convert",
    "Expand memcmp() to load/stores",
    "Expand vector predication intrinsics",
    "Fixup Statepoint Caller Saved",
    "Implement the 'patchable-function' attribute",
    "Init Undef Pass",
    "Insert KCFI indirect call checks",
    "Insert XRay ops",
    "Insert fentry calls",
    "Instrument function entry/exit with calls to e.g. mcount() (post inlining)",
    "Interleaved Access Pass",
    "Live DEBUG_VALUE analysis",
    "Local Dynamic TLS Access Clean-up",
    "Local Stack Slot Allocation",
    "Lower AMX intrinsics",
    "Lower AMX type for load/store",
    "Lower Garbage Collection Instructions",
    "Lower constant intrinsics",
    "Machine Sanitizer Binary Metadata",
    "Merge contiguous icmps into a memcmp",
    "Merge disjoint stack slots",
    "Optimize machine instruction PHIs",
    "Partially inline calls to library functions",
    "Post RA top-down list latency scheduler",
    "Pre-ISel Intrinsic Lowering",
    "Prepare callbr",
    "Pseudo Probe Inserter",
    "Register Allocation Pass Scoring",
    "Remove Redundant DEBUG_VALUE analysis",
    "Remove dead machine instructions",
    "Rename Disconnected Subregister Components",
    "Replace intrinsics with calls to vector library",
    "Safe Stack instrumentation pass",
    "Scalarize Masked Memory Intrinsics",
    "Scoped NoAlias Alias Analysis",
    "Shadow Stack GC Lowering",
    "Stack Frame Layout Analysis",
    "StackMap Liveness Analysis",
    "TLS Variable Hoist",
    "Tail Duplication",
    "Tile Register Configure",
    "Tile Register Pre-configure",
    "Type-Based Alias Analysis",
    "X86 Atom pad short functions",
    "X86 Avoid Store Forwarding Blocks",
    "X86 Discriminate Memory Operands",
    "X86 Domain Reassignment Pass",
    "X86 Indirect Branch Tracking",
    "X86 Indirect Thunks",
    "X86 Insert Cache Prefetches",
    "X86 LEA Optimize",
    "X86 Load Value Injection (LVI) Load Hardening",
    "X86 Load Value Injection (LVI) Ret-Hardening",
    "X86 Lower Tile Copy",
    "X86 Optimize Call Frame",
    "X86 PIC Global Base Reg Initialization",
    "X86 Partial Reduction",
    "X86 Return Thunks",
    "X86 Speculative Execution Side Effect Suppression",
    "X86 Windows Fixup Buffer Security Check",
    "X86 insert wait instruction",
    "X86 speculative load hardening",
};

// A third of the time, counting the registers that it fills. On x86 an address takes base, scaled
// index and offset, so loops lose nothing; lanes' multiples of a stride are moved out of them by
// others.
constexpr std::string_view kStrengthReduction = "Loop Strength Reduction";

// Takes the passes that the target asks for and that are worth their time.
class WorkingPasses : public llvm::legacy::PassManagerBase {
 public:
  WorkingPasses(llvm::legacy::PassManager& passes, bool is_x86)
      : passes_(passes), is_x86_(is_x86) {}
  void add(llvm::Pass* pass) override {
    const std::string_view name = pass->getPassName();
    if ((is_x86_ && name == kStrengthReduction) ||
        std::find(std::begin(kIdle), std::end(kIdle), name) != std::end(kIdle)) {
      delete pass;
    } else {
      passes_.add(pass);
    }
  }

 private:
  llvm::legacy::PassManager& passes_;
  const bool is_x86_;
};

}  // namespace

struct Generator::Passes {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream{bytes};
  llvm::legacy::PassManager manager;
};

Generator::Generator(Level level)
    : machine_(make_machine(level)), passes_(std::make_unique<Passes>()) {
  WorkingPasses working(passes_->manager, machine_->getTargetTriple().isX86());
  if (machine_->addPassesToEmitFile(working, passes_->stream, nullptr,
                                    llvm::CodeGenFileType::ObjectFile, /*DisableVerify=*/true)) {
    throw std::runtime_error("LLVM cannot emit objects for this target");
  }
}

Generator::~Generator() = default;

std::string Generator::emit(llvm::Module& module) {
#ifndef NDEBUG
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(module, &problems)) {
    throw std::runtime_error("the lowering made a malformed module: " + problem);
  }
#endif
  passes_->bytes.clear();
  passes_->manager.run(module);
  return std::string(passes_->bytes.data(), passes_->bytes.size());
}

}  // namespace rushlight::codegen
