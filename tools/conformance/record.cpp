// SPDX-License-Identifier: Apache-2.0
// Makes the recorded answers: conformance_record DRIVER_LIBRARY OUTPUT [options]
//   --rows TEXT        only the rows whose name contains TEXT, in the place of those that OUTPUT holds
//   --outputs FOLDER   also writes every row's whole output to a file of FOLDER
//   --against FOLDER   compares with such files and prints the first element that differs
//   --all              for a simulated GPU: all rows, each on the GPU that has it
// With `ptx` for the driver library, writes every module to the folder OUTPUT instead.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "driver_rows.h"
#include "recorded.h"

using namespace fa4::conformance;

namespace {

int write_modules(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  size_t number = 0;
  std::string last;
  std::ofstream names(folder / "names.txt");
  for (const Row& row : all_rows()) {
    const int major = row.needs == Needs::blackwell ? 10 : 9;
    std::string text = module_for(row, major, 0);
    if (text != last)
      std::ofstream(folder / (std::to_string(number) + ".ptx")) << "// " << row.name << "\n" << text;
    names << number << '\t' << row.name << '\n';
    last = std::move(text);
    ++number;
  }
  std::cout << number << " rows\n";
  return 0;
}

struct Options {
  std::string library, output, rows, outputs, against;
  bool all = false;
};

int record(const Options& o) {
  const auto& [library, output, only, outputs, against, all] = o;
  const DeviceText device = ask_device({library});
  Recording recording;
  if (!only.empty()) {
    std::ifstream file(output);
    recording = parse_recording(std::string{std::istreambuf_iterator<char>(file), {}});
  }
  recording.device = device.name;
  recording.driver = device.driver;
  recording.toolkit = std::to_string(CUDA_VERSION / 1000) + "." + std::to_string(CUDA_VERSION % 1000 / 10);
  recording.command = "conformance_record libcuda.so.1 tools/conformance/recorded/h200.txt";
  std::vector<const Row*> rows;
  for (const Row& row : all_rows()) {
    if (row.name.find(only) == std::string::npos) continue;
    if (all || runs_on(row, device.major)) rows.push_back(&row);
  }
  size_t differ = 0;
  const auto file_of = [](const std::string& folder, const Row& row) {
    std::string name = row.name;
    for (char& c : name) {
      if (c == '/' || c == ' ') c = '_';
    }
    return folder + "/" + name;
  };
  const auto record_row = [&](const Row& row, const Answer& answer) {
    if (answer.status != 0)
      std::cout << "row " << row.name << ": " << answer.status << " " << answer.failure << std::endl;
    recording.rows.insert_or_assign(row.name, record_of(answer));
    if (!outputs.empty() && answer.status == 0) {
      std::ofstream file(file_of(outputs, row), std::ios::binary);
      file.write(reinterpret_cast<const char*>(answer.output.data()), std::streamsize(answer.output.size()));
    }
    if (!against.empty() && answer.status == 0) {
      std::ifstream file(file_of(against, row), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      Answer expected;
      expected.output.assign(reinterpret_cast<const std::byte*>(bytes.data()),
                             reinterpret_cast<const std::byte*>(bytes.data()) + bytes.size());
      if (expected.output.size() != answer.output.size()) return;
      const std::string text = difference(row, expected, answer, "expected", "got");
      if (!text.empty()) std::cout << "DIFF " << row.name << ": " << text << std::endl, ++differ;
    }
  };
  if (all)
    run_rows_simulated(library, rows, record_row);
  else
    run_rows({library}, rows, record_row);
  std::cout << rows.size() << " rows, " << differ << " differ" << std::endl;
  std::ofstream(output) << text_of(recording);
  if (!only.empty()) return 0;
  run_driver_rows({library},
                  [&](const DriverRow& row, int result) { recording.calls.emplace(row.name, result); });
  std::ofstream(output) << text_of(recording);
  std::cout << recording.calls.size() << " calls" << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  std::string* const positional[] = {&o.library, &o.output};
  int at = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    std::string* const value = argument == "--rows"      ? &o.rows
                               : argument == "--outputs" ? &o.outputs
                               : argument == "--against" ? &o.against
                                                         : nullptr;
    if (value && i + 1 < argc)
      *value = argv[++i];
    else if (argument == "--all")
      o.all = true;
    else if (at < 2)
      *positional[at++] = argument;
    else
      at = 3;
  }
  if (at != 2) {
    std::cerr << "usage: conformance_record DRIVER_LIBRARY OUTPUT [--rows TEXT] [--outputs FOLDER] "
                 "[--against FOLDER] [--all]\n";
    return 2;
  }
  try {
    return o.library == "ptx" ? write_modules(o.output) : record(o);
  } catch (const std::exception& error) {
    std::cerr << "conformance_record: " << error.what() << '\n';
    return 1;
  }
}
