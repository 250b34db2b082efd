#define AIT_ISA generic
#define VL 4
#include "kernels/isa.h"
#include "kernels/template/tile_f32.inc"
#include "kernels/template/gemm_f32.inc"
#include "kernels/template/rows.inc"
#include "kernels/template/gemm_weight_f32.inc"
#include "kernels/template/expert_gemm.inc"
#include "kernels/template/conv_f32.inc"
#include "kernels/template/winograd_f32.inc"
#include "kernels/template/attention_f32.inc"
#include "kernels/template/cached_attention_f32.inc"
