// Loads the relocatable ELF objects that the code generator emits: one mapping an object, never
// unloaded. A loader of our own, so that kernels from the disk cache run without opening LLVM.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "loop/kernel.h"

namespace rushlight {

// The address of `symbol` in the object, ready to call. Returns null and says why in `error` where
// the bytes are not such an object; never reads out of their bounds. x86-64 only.
void* load_object(std::string_view bytes, const char* symbol, std::string* error);

// A function that runs the interpreter over `kernel`, which must outlive it.
loop::KernelFunction make_interpreter_thunk(const loop::Kernel& kernel);

}  // namespace rushlight
