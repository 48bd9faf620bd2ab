"""The reasons for layers that have more nodes than by hand."""

from harnesses.layers.reason import Reason

REASONS: tuple[Reason, ...] = (
    Reason(
        "The product is one of sequences again before it is split into queries, keys and values.",
        ("attention of nanoGPT",),
        ("portable",),
    ),
    Reason(
        "The mask is converted where it multiplies tokens, and again where it is counted.",
        ("mean of present tokens",),
        ("portable", "onnx", "tfjs"),
    ),
    Reason(
        "It takes no indices for each element of a batch; they are places in all of them.",
        ("last tokens of known lengths", "rows of the greatest", "vmap of x[[]i[]]"),
        ("tfjs",),
    ),
    Reason(
        "It joins a convolution with its bias and activation before they are transposed alone.",
        ("convolution, * features first", "vmap of eqx.nn.Conv2d*"),
        ("tfjs",),
    ),
    Reason(
        "What JAX orders as numbers greater than all others, NaN, is ordered so everywhere; the op "
        "alone has no order for it.",
        (
            "top_k",
            "sort",
            "argsort",
            "descending sort",
            "indices of a *",
            "rows of the top k",
            "rows of the k greatest",
        ),
    ),
    Reason(
        "The gates have weights of their own, which Flax multiplies one by one.",
        ("LSTM cell", "GRU cell"),
    ),
    Reason(
        "The query is divided by a root, where people multiply.",
        ("multi-head attention", "nn.SelfAttention"),
        ("portable",),
    ),
    Reason(
        "Its softmax does not take a maximum away, and it multiplies no matrices of odd sizes; see "
        "the quirks of TF.js.",
        (
            "attention*",
            "*-head attention",
            "nn.SelfAttention",
            "nnx.MultiHeadAttention",
            "*.attention*",
            "causal attention",
            "einsum b*hd*",
            "einsum ji,jk->ik",
        ),
        ("tfjs",),
    ),
    Reason(
        "Its softmax does not take a maximum away; see the quirks of TF.js.",
        (
            "softmax of a *",
            "softmax",
            "softmax, *",
            "softmax cross entropy",
            "log_softmax*",
            "cross entropy*",
        ),
        ("tfjs",),
    ),
    Reason("Rows without any element get zeros, which no softmax gives.", ("masked softmax",)),
    Reason(
        "JAX writes a cube as two products.",
        ("gelu, tanh*",),
        ("portable", "tfjs"),
    ),
    Reason(
        "It is computed by ELU, which all runtimes have.",
        ("selu",),
        ("portable",),
    ),
    Reason(
        "Its ops lose the digits of small numbers, which a series keeps.",
        ("selu", "elu, alpha 2"),
        ("tfjs",),
    ),
    Reason(
        "TF Lite has no Log1p, and by hand small numbers lose their digits.",
        ("softplus", "log_sigmoid", "mish", "convolution and softplus", "sigmoid cross entropy"),
        ("tflite",),
    ),
    Reason(
        "Kernels lose the digits of small numbers, or there is no Log1p.",
        ("log1p",),
        ("tflite", "tfjs"),
    ),
    Reason(
        "The statistics of each group are repeated for its channels, as Flax writes it; people "
        "reshape the array instead.",
        ("group norm of *",),
        ("portable", "tflite", "tfjs"),
    ),
    Reason(
        "TensorFlow has no op that repeats the ends; each end is broadcast.",
        ("pad, edge",),
        ("tflite",),
    ),
    Reason("A reversal and then every second row.", ("x[[]::-2[]]",)),
    Reason(
        "Runtimes reverse axes that are apart one by one; see their quirks.",
        ("flip",),
        ("tflite", "onnx", "tfjs"),
    ),
    Reason(
        "A weight is reshaped or transposed, which every optimizer does once.",
        (
            "depthwise convolution*",
            "nn.DenseGeneral",
            "nnx.LinearGeneral",
            "vmap of eqx.nn.Conv2d*",
        ),
        ("portable",),
    ),
    Reason("JAX chooses the diagonal by a mask.", ("einsum ii->i",), ("portable",)),
    Reason(
        "The op is used for the last axis alone.",
        ("one-hot of another axis",),
        ("portable", "tflite", "tfjs"),
    ),
    Reason("Its op gives integers.", ("one-hot", "smoothed labels"), ("tfjs",)),
    Reason(
        "Negative indices count from the end, as in JAX.",
        ("take_along_axis",),
        ("tflite", "tfjs"),
    ),
    Reason(
        "A slice is written, which has the axis of the index.",
        ("x.at[[]1[]].set",),
        ("onnx", "tfjs"),
    ),
    Reason(
        "JAX averages pixels by products with weights, of which TensorFlow's op has others.",
        ("resize to a half, antialiased",),
        ("portable",),
    ),
    Reason(
        "Elements are repeated by a broadcast, as JAX writes it.",
        ("upsampling by repetition",),
    ),
    Reason("Powers of negative infinity are infinite, unlike roots.", ("x [*][*] 0.5",)),
    Reason(
        "The absolute value of infinite numbers is infinite, in both parts.",
        ("power spectrum", "windowed spectrum"),
        ("portable",),
    ),
    Reason(
        "Complex numbers are two parts, whose size does not overflow.",
        ("windowed spectrum",),
        ("tflite", "tfjs"),
    ),
    Reason(
        "The transform is two products with matrices, of the two parts of its result.",
        ("power spectrum",),
        ("tfjs",),
    ),
    Reason(
        "The bias is added after the reshape.",
        ("dense of sequences*", "nnx.LinearGeneral"),
        ("tfjs",),
    ),
    Reason(
        "The bias is added after the reshape.",
        ("nnx.LinearGeneral",),
        ("onnx",),
    ),
    Reason(
        "The queries of a group are the rows of one matrix; by hand keys are broadcast to groups.",
        ("attention of groups",),
        ("portable", "tflite", "onnx"),
    ),
    Reason("The key is reshaped and transposed.", ("attention of one query",), ("onnx",)),
    Reason(
        "Infinite numbers have no difference, and JAX gives their sum.",
        ("logaddexp",),
        ("portable", "tflite", "tfjs"),
    ),
    Reason(
        "The result is cut to its size.",
        ("segment sum", "segment sum of unknown segments"),
        ("tflite",),
    ),
    Reason(
        "Its op begins with the least finite number, not with negative infinity.",
        ("segment maximum",),
        ("tflite",),
    ),
    Reason(
        "JAX computes each piece of the elements that it is for, and chooses by an index.",
        ("piecewise",),
    ),
    Reason("NaN stays NaN.", ("heaviside",)),
    Reason("The runtime lacks the op.", ("searchsorted", "digitize"), ("tfjs",)),
    Reason(
        "Weights are reshaped, and the products are scaled; by hand it is the query, whose weights "
        "take the factor in.",
        ("nnx.MultiHeadAttention",),
        ("portable", "tflite", "onnx"),
    ),
    Reason(
        "Flax inserts the axis of heads into the result, where people insert all axes at once.",
        ("mask of padding",),
        ("portable", "onnx", "tfjs"),
    ),
    Reason(
        "Zeros are replaced before the quotient, too, for its derivatives.",
        ("sinc",),
        ("portable", "tflite", "onnx"),
    ),
    Reason(
        "The index may be negative or too large, and the block is written in place.",
        ("decoding with *",),
    ),
    Reason("It is for negative numbers, too, whose powers are NaN, and has all digits.", ("cbrt",)),
    Reason(
        "The quotient is exact, as in Python: 1 // 0.1 is 9, where the floor of a rounded quotient "
        "is 10.",
        ("floor_divide",),
    ),
    Reason(
        "Runtimes refuse zero as a divisor or change infinite ones; the op is for known divisors.",
        ("mod",),
        ("portable", "tflite", "tfjs"),
    ),
    Reason("No square of it overflows, and infinite numbers have no quotient.", ("hypot",)),
    Reason("Infinite numbers are close to themselves.", ("isclose",)),
    Reason("JAX compares with all numbers at once, along an axis of their own.", ("isin",)),
    Reason("NaN is looked for twice: among the terms, and to count them.", ("nanmean",)),
    Reason(
        "JAX inserts the axis before the concatenation.",
        ("dstack",),
        ("portable", "tflite", "tfjs"),
    ),
    Reason("A weight is reshaped, which every optimizer does once.", ("tensordot",), ("portable",)),
    Reason("The exponential of a product loses digits of large numbers.", ("exp2",), ("tflite",)),
    Reason("Its op loses the digits of large angles.", ("tan", "sinc"), ("tfjs",)),
    Reason(
        "Its integers are exact to 24 bits, so bits are combined in halves.",
        ("bitwise_and",),
        ("tfjs",),
    ),
    Reason(
        "JAX orders NaN behind all numbers.",
        ("searchsorted by comparisons",),
    ),
    Reason(
        "The points may be variables, so slopes are computed, and equal points are no division.",
        ("interp",),
        ("portable", "tfjs"),
    ),
    Reason(
        "It is a scan by sums of exponentials, as no runtime has the op.",
        ("cumulative logsumexp",),
        ("portable",),
    ),
    Reason("NaN among the numbers gives NaN, and numbers are sorted around it.", ("median",)),
    Reason(
        "JAX finds the numbers by their places, as sizes must be known; by hand they may vary.",
        ("unique of a known size",),
        ("portable", "tflite", "tfjs"),
    ),
    Reason(
        "Negative numbers count as zeros, and ones are added by index.",
        ("bincount",),
        ("portable", "tflite"),
    ),
    Reason(
        "Bins are found by their edges, of which the last one is inside.",
        ("histogram",),
        ("portable",),
    ),
    Reason("JAX begins with zeros, which it multiplies by the argument.", ("polynomial",)),
    Reason(
        "Contractions are products of matrices in the order of the operands.",
        ("mixture of experts",),
        ("portable",),
    ),
    Reason(
        "The kernel has axes inserted and is reversed, which every optimizer does once.",
        ("convolve*",),
        ("portable", "tfjs"),
    ),
    Reason(
        "The runtime's transforms are not as exact as products with matrices.",
        ("spectrum and back",),
        ("tfjs",),
    ),
    Reason("JAX rolls by slices and a concatenation.", ("fftshift",), ("portable",)),
    Reason(
        "Classes out of bounds give NaN, negative ones count from the end, and infinite logits "
        "are no NaN.",
        ("softmax cross entropy of classes",),
    ),
    Reason(
        "JAX has masks of known queries, too, and asks of each key whether it is before the end.",
        ("attention to known lengths",),
        ("portable", "tflite", "onnx"),
    ),
    Reason(
        "Each convolution is transposed by itself; converters and ours to ONNX cancel that.",
        ("convolutions, features first",),
        ("portable", "tfjs"),
    ),
    Reason(
        "JAX has a transpose between two reshapes; the op for blocks needs one reshape.",
        ("patches as tokens",),
        ("portable", "tflite"),
    ),
    Reason("It has no convolutions in groups.", ("convolution, in two groups",), ("tfjs",)),
    Reason(
        "The vectors are transposed, which moves nothing.",
        ("vmap of matrices and vectors",),
        ("onnx",),
    ),
    Reason("The converter knows its own form of it alone.", ("unit norm",), ("tflite",)),
    Reason(
        "The op gave other results for some operands when the runtime was probed.",
        ("x // 3", "sign"),
        ("tfjs",),
    ),
    Reason(
        "The op gave other results for some operands when the runtime was probed.",
        ("count_nonzero",),
        ("onnx",),
    ),
)
