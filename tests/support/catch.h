// SPDX-License-Identifier: Apache-2.0
// One include for Catch2 v2 and v3. main() of every test executable lies in support/main.cpp.
#pragma once

#ifdef FA4_CATCH2_V3
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
