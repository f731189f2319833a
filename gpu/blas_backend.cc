// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/blas_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gpu/aligned_buffer.h"
#include "gpu/host_cpu.h"
#include "gpu/operators.h"
#include "gpu/shared_library.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

// The C interface of the Reference BLAS (netlib, cblas.h), with integers of 32 bits.
enum CblasLayout : int { row_major = 101, column_major = 102 };
enum CblasTranspose : int { not_transposed = 111, transposed = 112 };
using Dot = float(int n, const float* x, int x_step, const float* y, int y_step);
using MatrixVector = void(int layout, int transpose, int m, int n, float alpha, const float* a,
                          int a_stride, const float* x, int x_step, float beta, float* y,
                          int y_step);
using MatrixMatrix = void(int layout, int transpose_a, int transpose_b, int m, int n, int k,
                          float alpha, const float* a, int a_stride, const float* b, int b_stride,
                          float beta, float* c, int c_stride);

/// What an adapter says of its library beyond the functions that all share.
struct Flavour {
  std::string_view name;
  std::string_view how_to_get;
  std::vector<std::string> candidates;
  /// Adds version and core to the fingerprint; false where the library lacks a function.
  bool (*describe)(const SharedLibrary& library, Fingerprint& fingerprint);
  /// Sets the number of threads; false where the library lacks the function.
  bool (*set_threads)(const SharedLibrary& library, std::int64_t n);
};

bool describe_openblas(const SharedLibrary& library, Fingerprint& fingerprint) {
  auto* const config = library.find<char*()>("openblas_get_config");
  auto* const core = library.find<char*()>("openblas_get_corename");
  if (config == nullptr || core == nullptr) return false;
  fingerprint.entries.emplace_back(fingerprint_names::version, config());
  fingerprint.entries.emplace_back(fingerprint_names::core, core());
  return true;
}

bool set_openblas_threads(const SharedLibrary& library, std::int64_t n) {
  auto* const set = library.find<void(int)>("openblas_set_num_threads");
  if (set == nullptr) return false;
  set(static_cast<int>(n));
  return true;
}

bool describe_blis(const SharedLibrary& library, Fingerprint& fingerprint) {
  auto* const version = library.find<const char*()>("bli_info_get_version_str");
  auto* const query = library.find<int()>("bli_arch_query_id");
  auto* const text = library.find<const char*(int)>("bli_arch_string");
  if (version == nullptr || query == nullptr || text == nullptr) return false;
  fingerprint.entries.emplace_back(fingerprint_names::version, fmt::format("BLIS {}", version()));
  fingerprint.entries.emplace_back(fingerprint_names::core, text(query()));
  return true;
}

bool set_blis_threads(const SharedLibrary& library, std::int64_t n) {
  auto* const set = library.find<void(std::int64_t)>("bli_thread_set_num_threads");
  if (set == nullptr) return false;
  set(n);
  return true;
}

/// A matrix as the library gets it.
struct StoredMatrix {
  AlignedBuffer buffer;
  int stride = 1;
};

StoredMatrix store(const Tensor& matrix, CblasLayout layout) {
  const std::int64_t rows = matrix.shape[0];
  const std::int64_t columns = matrix.shape[1];
  if (layout == row_major) {
    return {AlignedBuffer(matrix.values, matrix.misalignment), static_cast<int>(columns)};
  }
  StoredMatrix stored{AlignedBuffer(matrix.values.size() * sizeof(float), matrix.misalignment),
                      static_cast<int>(rows)};
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      stored.buffer.floats()[j * rows + i] =
          matrix.values[static_cast<std::size_t>(i * columns + j)];
    }
  }
  return stored;
}

class BlasBackend final : public Backend {
 public:
  static Result<std::unique_ptr<Backend>> make(const Flavour& flavour, std::string_view path);

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] Fingerprint fingerprint() const override;
  [[nodiscard]] std::vector<OperatorSupport> operators() const override;
  [[nodiscard]] Result<Tensor> run(const OperatorCall& call) override;
  [[nodiscard]] Result<bool> set_threads(std::int64_t n) override;

 private:
  BlasBackend(const Flavour& flavour, std::string name, SharedLibrary library)
      : flavour_(flavour), name_(std::move(name)), library_(std::move(library)) {}

  void run_matrix_vector(const OperatorCall& call, CblasLayout layout, float* out) const;
  void run_matrix_matrix(const OperatorCall& call, CblasLayout layout, Tensor& out) const;

  Flavour flavour_;
  std::string name_;
  SharedLibrary library_;
  std::int64_t threads_ = 1;
  Dot* dot_ = nullptr;
  MatrixVector* matrix_vector_ = nullptr;
  MatrixMatrix* matrix_matrix_ = nullptr;
};

Result<std::unique_ptr<Backend>> BlasBackend::make(const Flavour& flavour, std::string_view path) {
  const std::vector<std::string> own = {std::string(path)};
  auto library = SharedLibrary::open(path.empty() ? flavour.candidates : own);
  if (!library) {
    return Error{ErrorKind::unavailable, fmt::format("{}: {}; {}", flavour.name,
                                                     library.error().message, flavour.how_to_get)};
  }
  std::string name(flavour.name);
  if (!path.empty()) name += fmt::format(":{}", path);
  std::unique_ptr<BlasBackend> backend(new BlasBackend(flavour, name, std::move(*library)));
  const SharedLibrary& loaded = backend->library_;
  backend->dot_ = loaded.find<Dot>("cblas_sdot");
  backend->matrix_vector_ = loaded.find<MatrixVector>("cblas_sgemv");
  backend->matrix_matrix_ = loaded.find<MatrixMatrix>("cblas_sgemm");
  Fingerprint fingerprint;
  if (backend->dot_ == nullptr || backend->matrix_vector_ == nullptr ||
      backend->matrix_matrix_ == nullptr || !flavour.describe(loaded, fingerprint) ||
      !flavour.set_threads(loaded, 1)) {
    return Error{ErrorKind::unavailable, fmt::format("{}: {:.200} is not a library of {}",
                                                     flavour.name, loaded.path(), flavour.name)};
  }
  return std::unique_ptr<Backend>(std::move(backend));
}

Fingerprint BlasBackend::fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.entries.emplace_back(fingerprint_names::backend, flavour_.name);
  flavour_.describe(library_, fingerprint);
  add_host_cpu(fingerprint);
  fingerprint.entries.emplace_back(fingerprint_names::threads, fmt::to_string(threads_));
  fingerprint.entries.emplace_back("library", library_.path());
  return fingerprint;
}

std::vector<OperatorSupport> BlasBackend::operators() const {
  return {{"dot", {"binary32"}, "cblas_sdot"},
          {"gemv", {"binary32"}, "cblas_sgemv; attribute layout=row|column"},
          {"gemm", {"binary32"}, "cblas_sgemm; attribute layout=row|column"},
          {"linear",
           {"binary32"},
           "cblas_sgemm, weights transposed; no bias; attribute layout=row|column"}};
}

Result<Tensor> BlasBackend::run(const OperatorCall& call) {
  static constexpr std::string_view layout_only[] = {"layout"};
  const bool is_dot = call.operation == "dot";
  auto shape = check_call(name_, call, operators(),
                          is_dot ? std::span<const std::string_view>() : layout_only);
  if (!shape) return shape.error();
  if (call.inputs.size() > 2) {
    return Error{ErrorKind::usage, fmt::format("linear: {} adds no bias", name_)};
  }
  for (const Tensor& tensor : call.inputs) {
    for (const std::int64_t size : tensor.shape) {
      if (size > std::numeric_limits<int>::max()) {
        return Error{ErrorKind::usage, fmt::format("{}: {} takes sizes of 32 bits, and got {}",
                                                   call.operation, name_, size)};
      }
    }
  }
  const std::string text = text_attribute(call, "layout", "row");
  if (text != "row" && text != "column") {
    return Error{ErrorKind::usage, fmt::format("{}: attribute layout={:.40} is neither row nor "
                                               "column",
                                               call.operation, text)};
  }
  const CblasLayout layout = text == "row" ? row_major : column_major;
  // Not per call in the library either: another back end of the same library may have set it.
  flavour_.set_threads(library_, threads_);
  Tensor out = zero_tensor(softfloat::binary32, std::move(*shape));
  if (is_dot) {
    AlignedBuffer a(call.inputs[0].values, call.inputs[0].misalignment);
    AlignedBuffer b(call.inputs[1].values, call.inputs[1].misalignment);
    out.values[0] = dot_(static_cast<int>(call.inputs[0].shape[0]), a.floats(), 1, b.floats(), 1);
  } else if (call.operation == "gemv") {
    AlignedBuffer y(out.values);
    run_matrix_vector(call, layout, y.floats());
    std::copy_n(y.floats(), out.values.size(), out.values.begin());
  } else {
    run_matrix_matrix(call, layout, out);
  }
  return out;
}

void BlasBackend::run_matrix_vector(const OperatorCall& call, CblasLayout layout,
                                    float* out) const {
  const Tensor& a = call.inputs[0];
  StoredMatrix stored = store(a, layout);
  AlignedBuffer x(call.inputs[1].values, call.inputs[1].misalignment);
  matrix_vector_(layout, not_transposed, static_cast<int>(a.shape[0]), static_cast<int>(a.shape[1]),
                 1.0F, stored.buffer.floats(), stored.stride, x.floats(), 1, 0.0F, out, 1);
}

void BlasBackend::run_matrix_matrix(const OperatorCall& call, CblasLayout layout,
                                    Tensor& out) const {
  const bool linear = call.operation == "linear";
  StoredMatrix a = store(call.inputs[0], layout);
  StoredMatrix b = store(call.inputs[1], layout);
  const auto rows = static_cast<int>(out.shape[0]);
  const auto columns = static_cast<int>(out.shape[1]);
  AlignedBuffer c(out.values);
  const int c_stride = layout == row_major ? columns : rows;
  matrix_matrix_(layout, not_transposed, linear ? transposed : not_transposed, rows, columns,
                 static_cast<int>(call.inputs[0].shape[1]), 1.0F, a.buffer.floats(), a.stride,
                 b.buffer.floats(), b.stride, 0.0F, c.floats(), c_stride);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const std::int64_t place =
          layout == row_major ? std::int64_t{i} * columns + j : std::int64_t{j} * rows + i;
      out.values[static_cast<std::size_t>(std::int64_t{i} * columns + j)] = c.floats()[place];
    }
  }
}

Result<bool> BlasBackend::set_threads(std::int64_t n) {
  if (n < 1 || n > 1024) {
    return Error{ErrorKind::usage, fmt::format("{} threads: 1 … 1024 are accepted", n)};
  }
  threads_ = n;
  return true;
}

/// Debian's path for this machine's architecture, then what the system finds by name.
std::vector<std::string> candidates_of(std::string_view folder, std::string_view library) {
#if defined(__aarch64__)
  constexpr std::string_view architecture = "aarch64";
#else
  constexpr std::string_view architecture = "x86_64";
#endif
  return {fmt::format("/usr/lib/{}-linux-gnu/{}/{}", architecture, folder, library),
          std::string(library)};
}

}  // namespace

Result<std::unique_ptr<Backend>> make_openblas_backend(std::string_view path) {
  const Flavour flavour{
      .name = "openblas",
      .how_to_get = "install the package libopenblas0-pthread, or name a library: openblas:PATH",
      .candidates = candidates_of("openblas-pthread", "libopenblas.so.0"),
      .describe = describe_openblas,
      .set_threads = set_openblas_threads};
  return BlasBackend::make(flavour, path);
}

Result<std::unique_ptr<Backend>> make_blis_backend(std::string_view path) {
  const Flavour flavour{
      .name = "blis",
      .how_to_get = "install the package libblis4-pthread, or name a library: blis:PATH",
      .candidates = candidates_of("blis-pthread", "libblis.so.4"),
      .describe = describe_blis,
      .set_threads = set_blis_threads};
  return BlasBackend::make(flavour, path);
}

}  // namespace kvsim::gpu
