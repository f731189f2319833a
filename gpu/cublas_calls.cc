// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/cublas_calls.h"

#include <fmt/format.h>

#include <array>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpu/shared_library.h"

namespace kvsim::gpu {
namespace {

// cublas_api.h and cublasLt.h of CUDA 13.0: handles are pointers, enumerations are int.
using Handle = void*;
constexpr int operation_none = 0;
constexpr int operation_transposed = 1;
constexpr int compute_binary32 = 68;      // CUBLAS_COMPUTE_32F
constexpr int compute_tf32 = 77;          // CUBLAS_COMPUTE_32F_FAST_TF32
constexpr int default_algorithm = -1;     // CUBLAS_GEMM_DEFAULT
constexpr int transpose_a_attribute = 3;  // CUBLASLT_MATMUL_DESC_TRANSA
constexpr int workspace_preference = 1;   // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
constexpr int most_algorithms = 64;

int compute_type(const CublasProduct& product) {
  return product.tf32 && product.input_type == cuda_types::binary32 ? compute_tf32
                                                                    : compute_binary32;
}

Error failed(std::string_view call, int status) {
  return Error{ErrorKind::file, fmt::format("{} gives status {}", call, status)};
}

/// What a version number says; both libraries count alike since 11.0.
std::string version_text(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

// Both libraries store matrices by columns. out by rows is its transpose by columns, and
// outᵀ = bᵀ aᵀ: so b is their first factor, transposed where it was stored by columns.

using GemmEx = int(Handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha,
                   const void* a, int a_type, int a_stride, const void* b, int b_type, int b_stride,
                   const void* beta, void* c, int c_type, int c_stride, int compute, int algorithm);

class Cublas final : public CublasCalls {
 public:
  explicit Cublas(SharedLibrary library) : library_(std::move(library)) {}
  ~Cublas() override {
    if (handle_ != nullptr) destroy_(handle_);
  }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  [[nodiscard]] Result<bool> start() {
    auto* const create = library_.find<int(Handle*)>("cublasCreate_v2");
    destroy_ = library_.find<int(Handle)>("cublasDestroy_v2");
    version_ = library_.find<int(Handle, int*)>("cublasGetVersion_v2");
    multiply_ = library_.find<GemmEx>("cublasGemmEx");
    if (create == nullptr || destroy_ == nullptr || version_ == nullptr || multiply_ == nullptr) {
      return Error{ErrorKind::unavailable, fmt::format("{:.200} is no cuBLAS", library_.path())};
    }
    const int status = create(&handle_);
    if (status == 0) return true;
    handle_ = nullptr;
    return Error{ErrorKind::unavailable, fmt::format("cublasCreate gives status {}", status)};
  }

  [[nodiscard]] std::string version() const override {
    int version = 0;
    return version_(handle_, &version) == 0 ? version_text(static_cast<std::size_t>(version))
                                            : "unknown";
  }

  [[nodiscard]] Result<bool> multiply(const CudaRuntime&, const CublasProduct& p) override {
    const float one = 1;
    const float zero = 0;
    const int status =
        multiply_(handle_, p.b_by_columns ? operation_transposed : operation_none, operation_none,
                  p.columns, p.rows, p.terms, &one, p.b, p.input_type,
                  p.b_by_columns ? p.terms : p.columns, p.a, p.input_type, p.terms, &zero, p.out,
                  p.output_type, p.columns, compute_type(p), default_algorithm);
    if (status == 0) return true;
    return failed("cublasGemmEx", status);
  }

 private:
  SharedLibrary library_;
  Handle handle_ = nullptr;
  int (*destroy_)(Handle) = nullptr;
  int (*version_)(Handle, int*) = nullptr;
  GemmEx* multiply_ = nullptr;
};

/// cublasLtMatmulAlgo_t and cublasLtMatmulHeuristicResult_t.
struct LightAlgorithm {
  std::array<std::uint64_t, 8> data;
};
struct LightChoice {
  LightAlgorithm algorithm;
  std::size_t workspace;
  int state;
  float waves;
  std::array<int, 4> reserved;
};
static_assert(sizeof(LightChoice) == 96 && std::is_trivially_copyable_v<LightChoice>);

/// The functions of cuBLASLt that are called; every handle is an opaque pointer.
struct LightFunctions {
  int (*create)(Handle*) = nullptr;
  int (*destroy)(Handle) = nullptr;
  std::size_t (*version)() = nullptr;
  int (*product_create)(Handle*, int compute, int scale_type) = nullptr;
  int (*product_destroy)(Handle) = nullptr;
  int (*product_set)(Handle, int attribute, const void* value, std::size_t bytes) = nullptr;
  int (*layout_create)(Handle*, int type, std::uint64_t rows, std::uint64_t columns,
                       std::int64_t stride) = nullptr;
  int (*layout_destroy)(Handle) = nullptr;
  int (*preference_create)(Handle*) = nullptr;
  int (*preference_destroy)(Handle) = nullptr;
  int (*preference_set)(Handle, int attribute, const void* value, std::size_t bytes) = nullptr;
  int (*choose)(Handle, Handle product, Handle a, Handle b, Handle c, Handle d, Handle preference,
                int requested, LightChoice* choices, int* found) = nullptr;
  int (*multiply)(Handle, Handle product, const void* alpha, const void* a, Handle a_layout,
                  const void* b, Handle b_layout, const void* beta, const void* c, Handle c_layout,
                  void* d, Handle d_layout, const LightAlgorithm* algorithm, void* workspace,
                  std::size_t bytes, void* stream) = nullptr;

  [[nodiscard]] bool find_in(const SharedLibrary& library) {
    const auto find = [&]<class Function>(Function*& function, const char* name) {
      function = library.find<Function>(name);
      return function != nullptr;
    };
    return find(create, "cublasLtCreate") && find(destroy, "cublasLtDestroy") &&
           find(version, "cublasLtGetVersion") &&
           find(product_create, "cublasLtMatmulDescCreate") &&
           find(product_destroy, "cublasLtMatmulDescDestroy") &&
           find(product_set, "cublasLtMatmulDescSetAttribute") &&
           find(layout_create, "cublasLtMatrixLayoutCreate") &&
           find(layout_destroy, "cublasLtMatrixLayoutDestroy") &&
           find(preference_create, "cublasLtMatmulPreferenceCreate") &&
           find(preference_destroy, "cublasLtMatmulPreferenceDestroy") &&
           find(preference_set, "cublasLtMatmulPreferenceSetAttribute") &&
           find(choose, "cublasLtMatmulAlgoGetHeuristic") && find(multiply, "cublasLtMatmul");
  }
};

/// A descriptor that is destroyed at the end.
class Descriptor {
 public:
  explicit Descriptor(int (*destroy)(Handle)) : destroy_(destroy) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (handle != nullptr) destroy_(handle);
  }
  Handle handle = nullptr;

 private:
  int (*destroy_)(Handle);
};

class CublasLight final : public CublasCalls {
 public:
  explicit CublasLight(SharedLibrary library) : library_(std::move(library)) {}
  ~CublasLight() override {
    if (handle_ != nullptr) call_.destroy(handle_);
  }
  CublasLight(const CublasLight&) = delete;
  CublasLight& operator=(const CublasLight&) = delete;

  [[nodiscard]] Result<bool> start() {
    if (!call_.find_in(library_)) {
      return Error{ErrorKind::unavailable, fmt::format("{:.200} is no cuBLASLt", library_.path())};
    }
    const int status = call_.create(&handle_);
    if (status == 0) return true;
    handle_ = nullptr;
    return Error{ErrorKind::unavailable, fmt::format("cublasLtCreate gives status {}", status)};
  }
  [[nodiscard]] std::string version() const override { return version_text(call_.version()); }
  [[nodiscard]] Result<bool> multiply(const CudaRuntime& runtime, const CublasProduct& p) override;

 private:
  SharedLibrary library_;
  LightFunctions call_;
  Handle handle_ = nullptr;
};

Result<bool> CublasLight::multiply(const CudaRuntime& runtime, const CublasProduct& p) {
  Descriptor product(call_.product_destroy);
  Descriptor a(call_.layout_destroy);
  Descriptor b(call_.layout_destroy);
  Descriptor out(call_.layout_destroy);
  Descriptor preference(call_.preference_destroy);
  const int transpose = p.b_by_columns ? operation_transposed : operation_none;
  const auto rows = static_cast<std::uint64_t>(p.rows);
  const auto terms = static_cast<std::uint64_t>(p.terms);
  const auto columns = static_cast<std::uint64_t>(p.columns);
  int status = call_.product_create(&product.handle, compute_type(p), cuda_types::binary32);
  const auto then = [&](auto&& next) {
    if (status == 0) status = next();
  };
  then([&] {
    return call_.product_set(product.handle, transpose_a_attribute, &transpose, sizeof transpose);
  });
  then([&] {
    return p.b_by_columns ? call_.layout_create(&b.handle, p.input_type, terms, columns, p.terms)
                          : call_.layout_create(&b.handle, p.input_type, columns, terms, p.columns);
  });
  then([&] { return call_.layout_create(&a.handle, p.input_type, terms, rows, p.terms); });
  then([&] { return call_.layout_create(&out.handle, p.output_type, columns, rows, p.columns); });
  then([&] { return call_.preference_create(&preference.handle); });
  then([&] {
    return call_.preference_set(preference.handle, workspace_preference, &p.workspace,
                                sizeof p.workspace);
  });
  if (status != 0) return failed("describing the product to cuBLASLt", status);

  std::vector<LightChoice> choices(most_algorithms);
  int found = 0;
  status = call_.choose(handle_, product.handle, b.handle, a.handle, out.handle, out.handle,
                        preference.handle, most_algorithms, choices.data(), &found);
  if (status != 0 || p.algorithm >= found) {
    return Error{ErrorKind::unavailable,
                 fmt::format("cuBLASLt names {} algorithms within {} bytes of workspace; number {} "
                             "was asked for",
                             status == 0 ? found : 0, p.workspace, p.algorithm)};
  }
  const LightChoice& choice = choices[static_cast<std::size_t>(p.algorithm)];
  const CudaBuffer workspace(runtime, p.workspace > 0 ? p.workspace : 16);
  if (workspace.get() == nullptr) return failed("cudaMalloc of the workspace", 2);
  const float one = 1;
  const float zero = 0;
  status = call_.multiply(handle_, product.handle, &one, p.b, b.handle, p.a, a.handle, &zero, p.out,
                          out.handle, p.out, out.handle, &choice.algorithm, workspace.get(),
                          p.workspace, nullptr);
  if (status != 0) return failed("cublasLtMatmul", status);
  return true;
}

template <class Library>
Result<std::unique_ptr<CublasCalls>> load(const std::vector<std::string>& candidates) {
  auto library = SharedLibrary::open(candidates);
  if (!library) return library.error();
  auto calls = std::make_unique<Library>(std::move(*library));
  if (const auto started = calls->start(); !started) return started.error();
  return std::unique_ptr<CublasCalls>(std::move(calls));
}

}  // namespace

Result<std::unique_ptr<CublasCalls>> load_cublas(const CudaLibraries& libraries) {
  return load<Cublas>(libraries.cublas);
}

Result<std::unique_ptr<CublasCalls>> load_cublaslt(const CudaLibraries& libraries) {
  return load<CublasLight>(libraries.cublaslt);
}

}  // namespace kvsim::gpu
