// The slots of the Tensor type, each defined by the file of its protocol.
#pragma once

#include <span>

#include "convert.h"

namespace rushlight::python {

std::span<const PyType_Slot> number_slots();    // numbers.cpp
std::span<const PyType_Slot> protocol_slots();  // protocols.cpp: len, iter, hash, repr, subscript

}  // namespace rushlight::python
