/* everything: made by wend 0.1.0. Link it with libm. */
#ifndef EVERYTHING_H
#define EVERYTHING_H
#include <stdbool.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* What a function returns. The workspace has the message of an error. A call that fails
   changes neither its arguments nor the state. */
enum { EVERYTHING_OK = 0, EVERYTHING_NO_MEMORY = 1, EVERYTHING_BAD_INDEX = 2, EVERYTHING_BAD_LENGTH = 3, EVERYTHING_BAD_SHAPE = 4, EVERYTHING_FAILED = 5 };

/* The memory of everything: for one call at a time, and for any number of calls. */
typedef struct {
  char message[512];  /* of the last call's error; empty if it had none */
  void (*print)(void *context, const char *text);  /* may be NULL */
  void *print_context;
  uint64_t words[348];
} everything_workspace;
void everything_workspace_init(everything_workspace *workspace);
void everything_workspace_release(everything_workspace *workspace);  /* frees what calls allocated */

/* (new_2: f64[n, m], x: f32[n], k: i8, z: c128) -> (result_0: f64[?], result_1: f32, result_2: c128) */
int everything(everything_workspace *workspace, const double *new_2, int64_t n, int64_t m, float *x, int8_t k, const double *z, const double **result_0, int64_t result_0_sizes[1], float *result_1, double *result_2);

#ifdef __cplusplus
}
#endif
#endif
