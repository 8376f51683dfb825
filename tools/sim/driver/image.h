// SPDX-License-Identifier: Apache-2.0
// From the bytes that a program loads to PTX text: plain text, a fatbinary that holds PTX, compressed or not,
// or a refusal.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "../../image/fatbinary.h"

namespace fa4::sim::driver {

using image::unknown_size;

// What a PTX text says about itself in its first directives.
struct PtxHeader {
  int version = 0;     // 10 * major + minor
  std::string target;  // "sm_100f"
};

// Reads `.version` and `.target`. False when the text does not begin with them.
bool read_ptx_header(std::string_view text, PtxHeader* header);

// Whether the simulated GPU runs code for this target: its own, its family's, or an older one without a letter.
// *rank orders those that it runs, the best highest.
bool runs_target(std::string_view target, int* rank);

struct Image {
  std::string ptx;
  PtxHeader header;
};

// Takes the image at `bytes`, of `size` bytes or as long as its own headers say when the size is unknown
// (then a file cut short must be followed by readable memory). On failure returns the code of a driver and
// keeps the sentence: 200 nothing that is an image, 209 nothing that this GPU runs, 218 PTX for another
// architecture or no PTX, 222 PTX of a newer version, 801 PTX compressed in a
// way that is not known.
CUresult read_image(const void* bytes, size_t size, Image* image);

}  // namespace fa4::sim::driver
