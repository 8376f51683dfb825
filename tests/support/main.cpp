// SPDX-License-Identifier: Apache-2.0
// main() of every test executable under Catch2 v2; v3 brings its own.
#ifndef FA4_CATCH2_V3
#define CATCH_CONFIG_MAIN
#endif
#include "catch.h"
