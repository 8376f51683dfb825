// SPDX-License-Identifier: Apache-2.0
// The C++ header compiles alone.
#include "fa4/fa4.hpp"
