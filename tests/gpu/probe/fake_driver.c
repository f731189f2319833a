/* SPDX-License-Identifier: Apache-2.0
   SPDX-FileCopyrightText: The kvsim authors

   Stands in for NVIDIA's driver where there is no GPU: loads an "image" and runs "kernels" on
   memory of the host. Its mma of f16 adds 16 products one after the other, which no GPU does; that
   of bf16 gives another result in one element of the tile; that of tf32 fails; that of f64 is a
   chain of fused multiply-adds, as the table has it; those with scales are sums in binary64.
   Functions are the host's. It has the compute capability that KVSIM_FAKE_CAPABILITY says, or 90.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long address;

int cuInit(unsigned flags);
int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }

int cuDriverGetVersion(int* version);
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }

int cuDeviceGetCount(int* count);
int cuDeviceGetCount(int* count) { return *count = 1, 0; }

int cuDeviceGet(int* device, int i);
int cuDeviceGet(int* device, int i) { return *device = i + 5, i == 0 ? 0 : 101; }

int cuDeviceGetName(char* name, int length, int device);
int cuDeviceGetName(char* name, int length, int device) {
  return strncpy(name, "Fake GPU", (size_t)length), device == 5 ? 0 : 101;
}

static int capability(void) {
  const char* const text = getenv("KVSIM_FAKE_CAPABILITY");
  return text == NULL ? 90 : atoi(text);
}

int cuDeviceGetAttribute(int* value, int attribute, int device);
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  const int all = capability();
  *value = attribute == 16 ? 7 : attribute == 75 ? all / 10 : attribute == 76 ? all % 10 : -1;
  return device == 5 ? 0 : 101;
}

int cuDevicePrimaryCtxRetain(void** context, int device);
int cuDevicePrimaryCtxRetain(void** context, int device) {
  static int only;
  return *context = &only, device == 5 ? 0 : 101;
}

static void* current;
int cuCtxSetCurrent(void* context);
int cuCtxSetCurrent(void* context) { return current = context, 0; }

int cuModuleLoadData(void** module, const void* image);
int cuModuleLoadData(void** module, const void* image) {
  if (current == NULL) return 201;
  return *module = (void*)image, strcmp((const char*)image, "image") == 0 ? 0 : 200;
}

int cuGetErrorName(int status, const char** name);
int cuGetErrorName(int status, const char** name) {
  *name = status == 200   ? "CUDA_ERROR_INVALID_IMAGE"
          : status == 500 ? "CUDA_ERROR_NOT_FOUND"
          : status == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                          : NULL;
  return *name == NULL ? 1 : 0;
}

static const char* const names[] = {
    "kvsim_mma_f16_f32", "kvsim_mma_bf16_f32", "kvsim_mma_tf32_f32", "kvsim_ex2",
    "kvsim_rcp",         "kvsim_mma_f64_f64",  "kvsim_mma_nvf4_f32", "kvsim_mma_mx_e2m1_f32"};
int cuModuleGetFunction(void** function, void* module, const char* name);
int cuModuleGetFunction(void** function, void* module, const char* name) {
  size_t i;
  for (i = 0; module != NULL && i < sizeof names / sizeof *names; ++i) {
    if (strcmp(names[i], name) == 0) return *function = (void*)names[i], 0;
  }
  return 500;
}

int cuMemAlloc_v2(address* memory, size_t bytes);
int cuMemAlloc_v2(address* memory, size_t bytes) {
  return *memory = (address)malloc(bytes), *memory == 0 ? 2 : 0;
}

int cuMemFree_v2(address memory);
int cuMemFree_v2(address memory) { return free((void*)memory), 0; }

int cuMemcpyHtoD_v2(address to, const void* from, size_t bytes);
int cuMemcpyHtoD_v2(address to, const void* from, size_t bytes) {
  return memcpy((void*)to, from, bytes), 0;
}

int cuMemcpyDtoH_v2(void* to, address from, size_t bytes);
int cuMemcpyDtoH_v2(void* to, address from, size_t bytes) {
  return memcpy(to, (const void*)from, bytes), 0;
}

static float number(unsigned bits) {
  float value;
  return memcpy(&value, &bits, 4), value;
}

static unsigned code(float value) {
  unsigned bits;
  return memcpy(&bits, &value, 4), bits;
}

static float from_half(unsigned half) {
  const unsigned field = half >> 10 & 31;
  const float significand = (float)(half & 1023);
  const float value = field == 0         ? (float)ldexp(significand, -24)
                      : field != 31      ? (float)ldexp(1024 + significand, (int)field - 25)
                      : significand == 0 ? number(0x7f800000)
                                         : number(0x7fc00000);
  return (half & 0x8000) != 0 ? -value : value;
}

static unsigned element(const unsigned* words, size_t row, size_t k) {
  return words[8 * row + k / 2] >> (16 * (k % 2)) & 0xffff;
}

static void multiply(const char* name, size_t rows, void** arguments) {
  const unsigned* const a = *(const unsigned**)arguments[0];
  const unsigned* const b = *(const unsigned**)arguments[1];
  const unsigned* const c = *(const unsigned**)arguments[2];
  unsigned* const d = *(unsigned**)arguments[3];
  size_t row, k;
  for (row = 0; row < rows; ++row) {
    float sum = number(c[row]);
    for (k = 0; k < 16; ++k) {
      sum += from_half(element(a, row, k)) * from_half(element(b, row, k));
    }
    for (k = 0; k < 128; ++k) d[128 * row + k] = code(sum);
    if (name == names[1]) ++d[128 * row + 77];
  }
}

double fma(double x, double y, double z); /* of C99 */
static void multiply_doubles(size_t rows, void** arguments) {
  const double* const a = *(const double**)arguments[0];
  const double* const b = *(const double**)arguments[1];
  const double* const c = *(const double**)arguments[2];
  double* const d = *(double**)arguments[3];
  const size_t terms = capability() >= 90 ? 16 : 4;
  const size_t tile = capability() >= 90 ? 128 : 64;
  const unsigned long nan_code = 0x7ff8000000000000;
  size_t row, k;
  for (row = 0; row < rows; ++row) {
    double sum = c[row];
    for (k = 0; k < terms; ++k) sum = fma(a[terms * row + k], b[terms * row + k], sum);
    if (sum != sum) memcpy(&sum, &nan_code, 8);
    for (k = 0; k < tile; ++k) d[tile * row + k] = sum;
  }
}

static double from_e2m1(unsigned code) {
  static const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return (code & 8) != 0 ? -values[code & 7] : values[code & 7];
}

static double scale_of(unsigned word, size_t block, int is_nvf4) {
  const int code = (int)(word >> (8 * block) & 255);
  if (!is_nvf4) return ldexp(1, code - 127);
  return code < 8 ? ldexp(code, -9) : ldexp(8 + code % 8, code / 8 - 10);
}

/* Of nvf4 64 elements of 4 bits, and a scale for each 16; of mx 32 in the middle of bytes. */
static void multiply_scaled(int is_nvf4, size_t rows, void** arguments) {
  const unsigned* const a = *(const unsigned**)arguments[0];
  const unsigned* const b = *(const unsigned**)arguments[1];
  const unsigned* const c = *(const unsigned**)arguments[2];
  unsigned* const d = *(unsigned**)arguments[3];
  const unsigned* const a_scales = *(const unsigned**)arguments[4];
  const unsigned* const b_scales = *(const unsigned**)arguments[5];
  const size_t in_word = is_nvf4 ? 8 : 4;
  size_t row, k;
  for (row = 0; row < rows; ++row) {
    double sum = number(c[row]);
    for (k = 0; k < 8 * in_word; ++k) {
      const size_t shift = is_nvf4 ? 4 * (k % 8) : 8 * (k % 4) + 2;
      const size_t block = is_nvf4 ? k / 16 : 0;
      sum += from_e2m1(a[8 * row + k / in_word] >> shift) *
             scale_of(a_scales[row], block, is_nvf4) *
             from_e2m1(b[8 * row + k / in_word] >> shift) * scale_of(b_scales[row], block, is_nvf4);
    }
    for (k = 0; k < 128; ++k) d[128 * row + k] = code((float)sum);
  }
}

int cuLaunchKernel(void* function, unsigned blocks, unsigned blocks_y, unsigned blocks_z,
                   unsigned threads, unsigned threads_y, unsigned threads_z, unsigned bytes,
                   void* stream, void** arguments, void** extra);
int cuLaunchKernel(void* function, unsigned blocks, unsigned blocks_y, unsigned blocks_z,
                   unsigned threads, unsigned threads_y, unsigned threads_z, unsigned bytes,
                   void* stream, void** arguments, void** extra) {
  if (blocks_y != 1 || blocks_z != 1 || threads_y != 1 || threads_z != 1 || bytes != 0) return 1;
  if (stream != NULL || extra != NULL || blocks == 0) return 1;
  if (function == names[0] || function == names[1]) {
    if (threads != 32) return 1;
    multiply((const char*)function, blocks, arguments);
  } else if (function == names[5]) {
    if (threads != 32) return 1;
    multiply_doubles(blocks, arguments);
  } else if (function == names[6] || function == names[7]) {
    if (threads != 32) return 1;
    multiply_scaled(function == names[6], blocks, arguments);
  } else if (function == names[3] || function == names[4]) {
    const float* const x = *(const float**)arguments[0];
    float* const y = *(float**)arguments[1];
    const unsigned count = *(unsigned*)arguments[2];
    unsigned i;
    if (count > blocks * threads) return 1;
    for (i = 0; i < count; ++i) {
      y[i] = function == names[3] ? (float)pow(2, x[i]) : (float)(1.0 / x[i]);
    }
  }
  current = (void*)(function == names[2] ? NULL : function);
  return 0;
}

int cuCtxSynchronize(void);
int cuCtxSynchronize(void) { return current == NULL ? 700 : 0; }
