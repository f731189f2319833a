/* SPDX-License-Identifier: Apache-2.0
   SPDX-FileCopyrightText: The kvsim authors

   Stands in for NVIDIA's driver, runtime, cuBLAS and cuBLASLt where there is no GPU: the functions
   that kvsim calls, with the meaning that NVIDIA's documentation gives them, on memory of the host.
   Matrices are stored by columns; binary32 and bfloat16. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct layout {
  int type;
  size_t rows, columns, stride;
} layout;
typedef struct product {
  int transpose_a, transpose_b;
} product;
typedef struct choice {
  unsigned long algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} choice;

int cuInit(unsigned flags);
int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }

int cuDriverGetVersion(int* version);
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }

int cuDeviceGetCount(int* count);
int cuDeviceGetCount(int* count) {
  const char* number = getenv("KVSIM_FAKE_GPUS");
  return *count = number == NULL ? 1 : number[0] - '0', 0;
}

int cuDeviceGet(int* device, int i);
int cuDeviceGet(int* device, int i) { return *device = i + 5, i == 0 ? 0 : 101; }

int cuDeviceGetName(char* name, int length, int device);
int cuDeviceGetName(char* name, int length, int device) {
  return strncpy(name, "Fake GPU", (size_t)length), device == 5 ? 0 : 101;
}

int cuDeviceGetAttribute(int* value, int attribute, int device);
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 16 ? 7 : attribute == 75 ? 9 : attribute == 76 ? 0 : -1;
  return device == 5 ? 0 : 101;
}

int cudaMalloc(void** memory, size_t bytes);
int cudaMalloc(void** memory, size_t bytes) { return (*memory = malloc(bytes)) == NULL ? 2 : 0; }

int cudaFree(void* memory);
int cudaFree(void* memory) { return free(memory), 0; }

int cudaMemcpy(void* to, const void* from, size_t bytes, int kind);
int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
  return memcpy(to, from, bytes), kind == 1 || kind == 2 ? 0 : 21;
}

static float read_number(const void* data, int type, size_t i) {
  float value;
  unsigned bits;
  if (type == 0) {
    memcpy(&value, (const char*)data + 4 * i, 4);
  } else {
    bits = (unsigned)((const unsigned short*)data)[i] << 16;
    memcpy(&value, &bits, 4);
  }
  return value;
}

static void write_number(void* data, int type, size_t i, float value) {
  unsigned bits;
  if (type == 0) {
    memcpy((char*)data + 4 * i, &value, 4);
  } else {
    memcpy(&bits, &value, 4);
    bits += 0x7fff + (bits >> 16 & 1); /* to nearest, ties to even */
    ((unsigned short*)data)[i] = (unsigned short)(bits >> 16);
  }
}

/* c[i + j stride] = sum of op(a)[i][l] op(b)[l][j]; `reverse`: from the last term. */
static void multiply(const product* p, size_t m, size_t n, size_t k, const void* a,
                     const layout* of_a, const void* b, const layout* of_b, void* c,
                     const layout* of_c, int reverse) {
  size_t i, j, step;
  for (i = 0; i < m; ++i) {
    for (j = 0; j < n; ++j) {
      float sum = 0;
      for (step = 0; step < k; ++step) {
        const size_t l = reverse ? k - 1 - step : step;
        const size_t place_a = p->transpose_a ? l + i * of_a->stride : i + l * of_a->stride;
        const size_t place_b = p->transpose_b ? j + l * of_b->stride : l + j * of_b->stride;
        sum += read_number(a, of_a->type, place_a) * read_number(b, of_b->type, place_b);
      }
      write_number(c, of_c->type, i + j * of_c->stride, sum);
    }
  }
}

int cublasCreate_v2(void** handle);
int cublasCreate_v2(void** handle) { return (*handle = malloc(1)) == NULL; }

int cublasDestroy_v2(void* handle);
int cublasDestroy_v2(void* handle) { return free(handle), 0; }

int cublasGetVersion_v2(void* handle, int* version);
int cublasGetVersion_v2(void* handle, int* version) { return *version = 130100, handle == NULL; }

int cublasGemmEx(void* handle, int transpose_a, int transpose_b, int m, int n, int k,
                 const float* alpha, const void* a, int a_type, int a_stride, const void* b,
                 int b_type, int b_stride, const float* beta, void* c, int c_type, int c_stride,
                 int compute, int algorithm);
int cublasGemmEx(void* handle, int transpose_a, int transpose_b, int m, int n, int k,
                 const float* alpha, const void* a, int a_type, int a_stride, const void* b,
                 int b_type, int b_stride, const float* beta, void* c, int c_type, int c_stride,
                 int compute, int algorithm) {
  product p;
  layout of_a, of_b, of_c;
  if (handle == NULL || *alpha != 1 || *beta != 0 || algorithm != -1) return 7;
  if (compute != 68 && !(compute == 77 && a_type == 0)) return 15;
  if (c_stride < m || a_stride < (transpose_a ? k : m) || b_stride < (transpose_b ? n : k))
    return 7;
  p.transpose_a = transpose_a;
  p.transpose_b = transpose_b;
  of_a.type = a_type;
  of_a.stride = (size_t)a_stride;
  of_b.type = b_type;
  of_b.stride = (size_t)b_stride;
  of_c.type = c_type;
  of_c.stride = (size_t)c_stride;
  multiply(&p, (size_t)m, (size_t)n, (size_t)k, a, &of_a, b, &of_b, c, &of_c, 0);
  return 0;
}

int cublasLtCreate(void** handle);
int cublasLtCreate(void** handle) { return cublasCreate_v2(handle); }

int cublasLtDestroy(void* handle);
int cublasLtDestroy(void* handle) { return cublasDestroy_v2(handle); }

size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void) { return 130100; }

int cublasLtMatmulDescCreate(product** p, int compute, int scale_type);
int cublasLtMatmulDescCreate(product** p, int compute, int scale_type) {
  *p = (product*)calloc(1, sizeof **p);
  return (compute == 68 || compute == 77) && scale_type == 0 ? 0 : 7;
}

int cublasLtMatmulDescDestroy(product* p);
int cublasLtMatmulDescDestroy(product* p) { return free(p), 0; }

int cublasLtMatmulDescSetAttribute(product* p, int attribute, const void* value, size_t bytes);
int cublasLtMatmulDescSetAttribute(product* p, int attribute, const void* value, size_t bytes) {
  if (attribute != 3 || bytes != sizeof(int)) return 7;
  return memcpy(&p->transpose_a, value, bytes), 0;
}

int cublasLtMatrixLayoutCreate(layout** l, int type, unsigned long rows, unsigned long columns,
                               long stride);
int cublasLtMatrixLayoutCreate(layout** l, int type, unsigned long rows, unsigned long columns,
                               long stride) {
  *l = (layout*)calloc(1, sizeof **l);
  (*l)->type = type;
  (*l)->rows = rows;
  (*l)->columns = columns;
  (*l)->stride = (size_t)stride;
  return (*l)->stride >= rows ? 0 : 7;
}

int cublasLtMatrixLayoutDestroy(layout* l);
int cublasLtMatrixLayoutDestroy(layout* l) { return free(l), 0; }

int cublasLtMatmulPreferenceCreate(size_t** bytes);
int cublasLtMatmulPreferenceCreate(size_t** bytes) {
  return (*bytes = (size_t*)calloc(1, sizeof **bytes)) == NULL;
}

int cublasLtMatmulPreferenceDestroy(size_t* bytes);
int cublasLtMatmulPreferenceDestroy(size_t* bytes) { return free(bytes), 0; }

int cublasLtMatmulPreferenceSetAttribute(size_t* to, int attribute, const void* value,
                                         size_t bytes);
int cublasLtMatmulPreferenceSetAttribute(size_t* to, int attribute, const void* value,
                                         size_t bytes) {
  return memcpy(to, value, bytes), attribute == 1 && bytes == sizeof(size_t) ? 0 : 7;
}

static int fits(const product* p, const layout* a, const layout* b, const layout* c) {
  const size_t m = p->transpose_a ? a->columns : a->rows;
  const size_t k = p->transpose_a ? a->rows : a->columns;
  return m == c->rows && k == b->rows && b->columns == c->columns;
}

int cublasLtMatmulAlgoGetHeuristic(void* handle, product* p, layout* a, layout* b, layout* c,
                                   layout* d, size_t* workspace, int requested, choice* choices,
                                   int* found);
int cublasLtMatmulAlgoGetHeuristic(void* handle, product* p, layout* a, layout* b, layout* c,
                                   layout* d, size_t* workspace, int requested, choice* choices,
                                   int* found) {
  if (handle == NULL || c != d || !fits(p, a, b, c)) return 7;
  /* The second algorithm needs a workspace. */
  *found = *workspace >= 1024 && requested > 1 ? 2 : 1;
  choices[0].algorithm[0] = 40;
  if (*found == 2) choices[1].algorithm[0] = 41;
  return 0;
}

int cublasLtMatmul(void* handle, product* p, const float* alpha, const void* a, layout* of_a,
                   const void* b, layout* of_b, const float* beta, const void* c, layout* of_c,
                   void* d, layout* of_d, const unsigned long* algorithm, void* workspace,
                   size_t bytes, void* stream);
int cublasLtMatmul(void* handle, product* p, const float* alpha, const void* a, layout* of_a,
                   const void* b, layout* of_b, const float* beta, const void* c, layout* of_c,
                   void* d, layout* of_d, const unsigned long* algorithm, void* workspace,
                   size_t bytes, void* stream) {
  if (handle == NULL || *alpha != 1 || *beta != 0 || c != d || stream != NULL) return 7;
  if (!fits(p, of_a, of_b, of_d) || of_c != of_d || workspace == NULL) return 7;
  if (algorithm[0] == 41 && bytes < 1024) return 7;
  multiply(p, of_d->rows, of_d->columns, of_b->rows, a, of_a, b, of_b, d, of_d, algorithm[0] == 41);
  return 0;
}
