#include <llvm/IR/Constants.h>

#include "codegen/target.h"

namespace rushlight::codegen {

std::string emit_constant(Generator& generator, const std::string& name, std::string_view bytes) {
  llvm::LLVMContext context;
  llvm::Module module("constant", context);
  module.setTargetTriple(generator.machine().getTargetTriple().str());
  module.setDataLayout(generator.machine().createDataLayout());
  llvm::Constant* value = llvm::ConstantDataArray::getString(
      context, llvm::StringRef(bytes.data(), bytes.size()), /*AddNull=*/false);
  auto* constant = new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                                            llvm::GlobalValue::ExternalLinkage, value, name);
  constant->setVisibility(llvm::GlobalValue::HiddenVisibility);
  constant->setAlignment(llvm::Align(8));
  return generator.emit(module);
}

}  // namespace rushlight::codegen
