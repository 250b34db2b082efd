#define AIT_ISA avx2
#define VL 8
#include "kernels/isa.h"
#include "axpb_f32.inc"
