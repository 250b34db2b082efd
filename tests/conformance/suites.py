"""What is measured: the suites, how their cases are made, their targets, and into which family an operator belongs."""
import re

# name: (what it is, arguments of aten_cases.py or None, share that must pass on the reference backend)
SUITES = {
    "float32": ("ATen, float32, as exported", ["--dtype", "float32", "--max-samples", "4"], 0.95),
    "float32-core": ("ATen, float32, decomposed to core ATen", ["--dtype", "float32", "--max-samples", "4", "--decompose"], 0.99),
    "integers": ("ATen, int64, int32, uint8, bool", ["--dtype", "int64,int32,uint8,bool", "--max-samples", "2"], 0.95),
    "half": ("ATen, float16, bfloat16", ["--dtype", "float16,bfloat16", "--max-samples", "2"], 0.95),
    "complex": ("ATen, complex64", ["--dtype", "complex64", "--max-samples", "2"], 0.90),
    "in-place": ("ATen, in-place forms and extra calls, float32",
                 ["--dtype", "float32", "--max-samples", "1", "--forms", "inplace,extra"], 0.95),
    "onnx": ("ONNX node tests of onnx 1.22", None, 0.97),
}
BACKENDS = ("reference", "native")

ATEN_FAMILIES = (  # the first that matches
    ("modules", r"nn\.[A-Z]"),
    ("masked", r"masked\."),
    ("convolution, linear, attention", r"nn\.functional\.(conv|linear$|bilinear|multi_head|scaled_dot)"),
    ("pooling, padding, resampling", r"nn\.functional\.(.*pool|pad$|interpolate|upsample|grid|pixel|unfold|channel_sh)|grid_sampler|constant_pad"
                                     r"|_upsample|max_pool"),
    ("normalisation, activation, loss", r"nn\.functional\.|.*(batch_norm|layer_norm|group_norm)|.*softmax|_softmax"),
    ("FFT, windows", r"fft\.|signal\.|i?stft$"),
    ("special functions", r"special\.|polygamma|mvlgamma|igamma|lgamma|digamma|erf|i0$|sinc$|xlogy"),
    ("linear algebra", r"linalg\.|matmul$|__rmatmul__|mm$|bmm$|mv$|addb?mm$|baddbmm|addmm|addmv|addr$|v?dot$|inner$|outer$|cholesky|lu$|lu_|svd|qr$"
                       r"|geqrf|ormqr|triangular|pinverse|trace$|kron$|einsum|tensordot|logdet|matrix_exp|cdist|pca_|cross$|renorm|cov$|corrcoef"),
    ("random", r"bernoulli|cauchy|exponential|geometric|log_normal|multinomial|normal$|rand|uniform|native_dropout"),
    ("reductions", r"sum$|mean$|prod$|std|var|amax|amin|aminmax|any$|all$|max$|min$|argm|norm$|nan(sum|mean|median|quantile)|median|quantile|mode$"
                   r"|logsumexp|count_nonzero|hist|cum|logcumsumexp|trap|dist$|hash_tensor|_segment|segment"),
    ("sorting, searching", r"sort|argsort|msort|topk|kthvalue|unique|searchsorted|bucketize|isin$|nonzero|argwhere"),
    ("indexing, scattering", r"__getitem__|index|gather|scatter|take|put$|select|masked_|slice|_unsafe_masked|where|fill$|diagonal_sc|as_strided_sc"),
    ("control flow", r"cond|while|scan|map|associative|extra\.(cond|while|scan|map)"),
    ("creation", r"(new_)?(empty|ones|zeros|full|eye|arange|linspace|logspace|scalar_tensor|tril|triu)"),
    ("views, shapes, joining", r"view|reshape|permute|transpose|squeeze|unsqueeze|expand|broadcast|flatten|unflatten|split|chunk|[hvd]?stack|cat|unbind|"
                               r"[hvdc]split|narrow|diag|movedim|[tTH]$|m[TH]$|swap|tile|repeat|roll|rot90|flip|unfold|as_strided|block_diag|meshgrid|"
                               r"cartesian|column_stack|atleast|combinations|resize|alias|contiguous|clone|to$|ravel|tensor_split|unsafe|sum_to|lift|"
                               r"_chunk_cat|(c?float|c?double|c?half|chalf|long|int|short|byte|char|bool|bfloat16)$"),
    ("element by element", r""),
)

ONNX_FAMILIES = (  # by operator type
    ("functions, expanded", None),
    ("quantised", r"Q(uantize|Linear)|.*[qQ]uantize|.*Integer|.*Cast"),
    ("recurrent", r"LSTM|GRU|RNN"),
    ("control flow, sequences", r"If|Loop|Scan|Sequence|Optional|Concat.*Sequence"),
    ("traditional ML, training", r"(Adam|Adagrad|Momentum|Gradient|TreeEnsemble|LabelEncoder|.*Vectorizer|Scaler|Normalizer|Binarizer)"),
    ("reductions", r"Reduce|Arg|CumSum|CumProd|TopK"),
    ("convolution, pooling, images", r".*Conv|.*Pool|Resize|Upsample|GridSample|AffineGrid|ImageDecoder|RoiAlign|Col2Im|DepthToSpace|SpaceToDepth|CenterCrop"
                                     r"|NonMaxSuppression|Pad"),
    ("normalisation, activation, loss", r".*Normalization|.*[sS]oftmax|.*Relu|Gelu|Elu|Selu|Celu|Hard|Mish|Swish|Softplus|Softsign|Shrink|.*Loss|Dropout|LRN|Sigmoid"
                                        r"|ThresholdedRelu|.*Entropy"),
    ("linear algebra, attention", r"MatMul|Gemm|Einsum|Det|Attention|RotaryEmbedding|TensorScatter"),
    ("signal", r"DFT|STFT|.*Window|MelWeight"),
    ("random", r"Random|Bernoulli|Multinomial"),
    ("text", r"String|Regex|Tfidf"),
    ("shapes, indexing", r"Reshape|Transpose|Concat|Split|Slice|Gather|Scatter|Squeeze|Unsqueeze|Expand|Tile|Flatten|Shape|Size|Identity|Compress|Where|OneHot|"
                         r"NonZero|Unique|ReverseSequence|Trilu|EyeLike|Constant|Range|.*Like|BitShift|Center"),
    ("element by element", r""),
)


def family_of(suite, case):
    """Family of a case of cases.json."""
    if suite == "onnx":
        ops = [t for t in case["tags"] if not t.startswith("opset-")]
        if "_expanded" in case["name"] or not ops:
            return ONNX_FAMILIES[0][0]
        return next(name for name, rule in ONNX_FAMILIES[1:] if any(re.match(rule, op) for op in ops[:1]))
    return next(name for name, rule in ATEN_FAMILIES if re.match(rule, case["tags"][0]))


def dtype_of(suite, case):
    return "" if suite == "onnx" else case["name"].rsplit("/", 1)[1].rsplit("-", 1)[0]
