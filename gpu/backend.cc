// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "gpu/blas_backend.h"
#include "gpu/cublas_backend.h"
#include "gpu/plugin_backend.h"
#include "gpu/sim_backend.h"
#include "gpu/torch_backend.h"
#include "softfloat/suggest.h"

namespace kvsim::gpu {
namespace {

constexpr BackendRow rows[] = {
    {"sim", "KERNEL", false, "the simulator itself: a kernel, or an order that the call states",
     make_sim_backend},
    {"openblas", "PATH", false, "OpenBLAS: dot, gemv, gemm and linear in binary32",
     make_openblas_backend},
    {"blis", "PATH", false, "BLIS: dot, gemv, gemm and linear in binary32", make_blis_backend},
    {"torch-cpu", "", false, "PyTorch's ATen on the CPU, in binary32, bfloat16 and binary16",
     make_torch_cpu_backend},
    {"torch-cuda", "", false, "PyTorch's ATen on an NVIDIA GPU, in the same formats",
     make_torch_cuda_backend},
    {"cublas", "", false, "cuBLAS: gemm, matmul and linear", make_cublas_backend},
    {"cublaslt", "", false, "cuBLASLt, algorithm by algorithm: the same", make_cublaslt_backend},
    {"plugin", "PATH", true, "a shared library of your own (include/kvsim/plugin.h)",
     make_plugin_backend},
};

}  // namespace

std::string_view Fingerprint::value(std::string_view name) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == entries.end() ? std::string_view() : std::string_view(found->second);
}

std::string Fingerprint::key() const {
  std::string text;
  for (const std::string_view name : fingerprint_names::in_key) {
    const std::string_view found = value(name);
    if (found.empty()) continue;
    fmt::format_to(std::back_inserter(text), "{}{}={}", text.empty() ? "" : "; ", name, found);
  }
  return text;
}

std::span<const BackendRow> backend_rows() { return rows; }

Result<std::unique_ptr<Backend>> make_backend(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  const bool has_argument = colon != std::string_view::npos;
  const std::string_view argument = has_argument ? name.substr(colon + 1) : std::string_view();
  std::vector<std::string_view> names;
  names.reserve(backend_rows().size());
  for (const BackendRow& row : backend_rows()) {
    names.push_back(row.name);
    if (row.name != kind) continue;
    if (row.argument.empty() && has_argument) {
      return Error{ErrorKind::usage,
                   fmt::format("back end '{}' takes nothing after a colon, and got '{:.80}'",
                               row.name, argument)};
    }
    if (row.argument_required && argument.empty()) {
      return Error{ErrorKind::usage, fmt::format("back end '{}' needs {}: {}:{}", row.name,
                                                 row.argument, row.name, row.argument)};
    }
    return row.make(argument);
  }
  const std::string_view near = softfloat::nearest(kind, names);
  return Error{ErrorKind::usage,
               fmt::format("no back end is called '{:.80}'{}; there are {}", kind,
                           near.empty() ? "" : fmt::format(": did you mean '{}'?", near),
                           fmt::join(names, ", "))};
}

}  // namespace kvsim::gpu
