#define AIT_ISA avx512
#define VL 16
#include "kernels/isa.h"
#include "axpb_f32.inc"
