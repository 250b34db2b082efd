#define AIT_ISA avx512
#define VL 16
#include "kernels/isa.h"
#include "kernels/template/elementwise_f32.inc"
