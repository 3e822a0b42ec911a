#include <llvm/IR/Constants.h>

#include <algorithm>

#include "codegen/target.h"

namespace rushlight::codegen {

// Offsets, not addresses: the table then needs no work when the library is loaded.
std::string emit_pack_table(Generator& generator, const std::string& name,
                            std::vector<PackedFunction> functions) {
  std::sort(functions.begin(), functions.end(),
            [](const PackedFunction& a, const PackedFunction& b) { return a.key < b.key; });
  llvm::LLVMContext context;
  llvm::Module module("pack", context);
  module.setTargetTriple(generator.machine().getTargetTriple().str());
  module.setDataLayout(generator.machine().createDataLayout());
  llvm::Type* word = llvm::Type::getInt64Ty(context);
  llvm::StructType* entry = llvm::StructType::get(word, word);
  llvm::ArrayType* entries = llvm::ArrayType::get(entry, functions.size());
  llvm::StructType* type = llvm::StructType::get(word, entries);
  auto* table = new llvm::GlobalVariable(module, type, /*isConstant=*/true,
                                         llvm::GlobalValue::ExternalLinkage, nullptr, name);
  table->setVisibility(llvm::GlobalValue::HiddenVisibility);
  llvm::FunctionType* signature =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), /*isVarArg=*/false);
  std::vector<llvm::Constant*> rows;
  for (const PackedFunction& packed : functions) {
    llvm::Function* function =
        llvm::Function::Create(signature, llvm::Function::ExternalLinkage, packed.symbol, module);
    function->setVisibility(llvm::GlobalValue::HiddenVisibility);
    llvm::Constant* offset =
        llvm::ConstantExpr::getSub(llvm::ConstantExpr::getPtrToInt(function, word),
                                   llvm::ConstantExpr::getPtrToInt(table, word));
    rows.push_back(
        llvm::ConstantStruct::get(entry, {llvm::ConstantInt::get(word, packed.key), offset}));
  }
  table->setInitializer(llvm::ConstantStruct::get(
      type,
      {llvm::ConstantInt::get(word, functions.size()), llvm::ConstantArray::get(entries, rows)}));
  return generator.emit(module);
}

}  // namespace rushlight::codegen
