// The slots of the Tensor type, each defined by the file of its protocol.
#pragma once

#include <span>

#include "convert.h"

namespace rushlight::python {

std::span<const PyType_Slot> number_slots();  // numbers.cpp
// Gives a new subclass Tensor's own slots where it changes none of their methods: Python would put
// a search for the method before each. (number_methods.cpp)
void inherit_number_slots(PyTypeObject* type);
std::span<const PyType_Slot> protocol_slots();  // protocols.cpp: len, iter, hash, repr, subscript

}  // namespace rushlight::python
