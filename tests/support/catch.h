// SPDX-License-Identifier: Apache-2.0
// One include for Catch2 v2 and v3. Each test executable compiles support/main.cpp, which holds main().
#pragma once

#ifdef FA4_CATCH2_V3
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
