"""What TF.js gets wrong by one of its backends, in JavaScript, WebAssembly or WebGL.

Each is reproduced by the body of an asynchronous function in JavaScript. It is called with `tf`,
whose backend is that of the quirk and which has the functions of all packages of TF.js.
"""

from lowering.targets.quirk import quirks_of

_PACKAGES = ("backend-cpu", "backend-wasm", "converter", "core")
_quirk = quirks_of("tfjs", {f"@tensorflow/tfjs-{name}": "4.22.0" for name in _PACKAGES})
_SOURCES = "https://github.com/tensorflow/tfjs/blob"


@_quirk(
    f"{_SOURCES}/12e993e245770570277ef1da939ab2f5e18a62ba/tfjs-backend-webgl/src/reduce_gpu.ts",
    "lowering.rules.softmax.shifted",
    backend="webgl",
)
def maxima_of_large_negative_numbers() -> str:
    """A maximum begins at -1e20, so that a Softmax of numbers below is not one."""
    return "return tf.softmax(tf.tensor([-2e20, -3e20])).dataSync()[1] !== 0;"


@_quirk(
    f"{_SOURCES}/12e993e245770570277ef1da939ab2f5e18a62ba/tfjs-backend-webgl/src/mulmat_packed_gpu.ts",
    "lowering.ops.even.contracted",
    backend="webgl",
)
def products_of_odd_sizes() -> str:
    """A product of matrices takes what is beside an odd number of elements for one of them.

    Two rows and two columns are kept together. Beside the last one of an odd number may be any
    number that has been computed there.
    """
    return """
      const x = tf.exp(tf.zeros([3, 3])), y = tf.exp(tf.zeros([3, 3]));
      return tf.matMul(x, y).dataSync()[0] !== 3;
    """


@_quirk(
    f"{_SOURCES}/0bfb4e3dcc366c4a1ce915cfe989d4e043f57fa8"
    "/tfjs-backend-webgl/src/scatter_packed_gpu.ts",
    ("lowering.ops.even.padded", "lowering.ops.substitutes.movement._scattered"),
    backend="webgl",
)
def scatters_of_odd_sizes() -> str:
    """A scatter takes what is beside an odd number of updates for one of them."""
    return """
      const one = tf.scalar(1, 'int32'), places = tf.tensor([[0], [1], [2]], [3, 1], 'int32');
      const indices = tf.add(tf.mul(places, one), one);
      return tf.scatterND(indices, tf.exp(tf.zeros([3, 3])), [5, 3]).dataSync()[3] !== 1;
    """


@_quirk(
    f"{_SOURCES}/6b6baf179dfa57ff739e9ab41f72e82df1e44b85/tfjs-backend-webgl/src/backend_webgl.ts",
    "lowering.passes.legalize.split_uint32.split_uint32",
    backend="webgl",
)
def integers_of_24_bits() -> str:
    """Integers are floats in textures, exact to 24 bits."""
    return """
      const x = tf.tensor([16777216], [1], 'int32'), y = tf.tensor([1], [1], 'int32');
      return tf.add(x, y).dataSync()[0] !== 16777217;
    """


@_quirk(
    f"{_SOURCES}/1f1eb8ebd24be94d1468fd185ed0f48b1307a889/tfjs-backend-webgl/src/kernels/Sin.ts",
    "lowering.ops.substitutes.angles.sine",
    backend="webgl",
)
def digits_of_sines() -> str:
    """Sines and cosines are those of the graphics card, which may have three digits."""
    return "return Math.abs(tf.sin(tf.tensor([1, 2])).dataSync()[1] - Math.sin(2)) > 1e-6;"


@_quirk(
    f"{_SOURCES}/fed6bb0c0e73d77e6fee5f2b4ada6b802b80d19b/tfjs-backend-webgl/src/kernels/Erf.ts",
    "lowering.rules.activations.gelu_by_op",
    backend="webgl",
)
def digits_of_small_errors() -> str:
    """The error function of small numbers has three digits."""
    return "return Math.abs(tf.erf(tf.tensor([1e-4])).dataSync()[0] / 1.1283792e-4 - 1) > 1e-4;"


@_quirk(
    f"{_SOURCES}/12e993e245770570277ef1da939ab2f5e18a62ba/tfjs-backend-cpu/src/kernels/Multiply.ts",
    "lowering.rules.binary.mul_tfjs",
    backend="cpu",
)
def products_in_float64() -> str:
    """Integers are multiplied in float64, which does not have all digits of large products."""
    return """
      const x = tf.tensor([94906267], [1], 'int32');
      return tf.mul(x, x).dataSync()[0] !== Math.imul(94906267, 94906267);
    """


@_quirk(
    f"{_SOURCES}/0edefafd44ea3e3ed600bc269d97615bf98df601/tfjs-backend-cpu/src/kernels/Pow.ts",
    "lowering.rules.binary.pow_tfjs",
    backend="cpu",
)
def infinite_powers_of_one() -> str:
    """The infinite powers of 1 and -1 are NaN, as in JavaScript."""
    return "return isNaN(tf.pow(tf.tensor([1]), tf.tensor([Infinity])).dataSync()[0]);"


@_quirk(
    f"{_SOURCES}/1e4f69c64e50d370c7f95513c12fffddff371221"
    "/tfjs-backend-wasm/src/cc/kernels/FloorDiv.cc",
    "lowering.ops.substitutes.integers._floor_div_by_floats",
    backend="wasm",
)
def quotients_in_float32() -> str:
    """Integers are divided in float32."""
    return """
      const x = tf.tensor([16777217], [1], 'int32'), y = tf.tensor([1], [1], 'int32');
      return tf.floorDiv(x, y).dataSync()[0] !== 16777217;
    """


@_quirk(
    f"{_SOURCES}/68d15138344ad24d8bd0fb3eb38dc19afd48ed22"
    "/tfjs-backend-wasm/src/cc/kernels/OneHot.cc",
    "lowering.rules.indices.one_hot_tfjs",
    backend="wasm",
)
def one_hot_of_integers() -> str:
    """The ones of one-hot vectors are written as integers, whatever the dtype."""
    return """
      const vectors = tf.oneHot(tf.tensor([1], [1], 'int32'), 3, 1, 0, 'float32');
      return vectors.dataSync()[1] !== 1;
    """


@_quirk(
    f"{_SOURCES}/353aa814fb3baa7a13151cb26bd97b9ea3c5efe5/tfjs-backend-wasm/src/cc/kernels/Log1p.cc",
    "lowering.ops.substitutes.exponentials._log1p",
    backend="wasm",
)
def log1p_of_small_numbers() -> str:
    """Log1p is the logarithm of a sum, without the digits of small numbers."""
    return "return tf.log1p(tf.tensor([1e-8])).dataSync()[0] === 0;"


@_quirk(
    f"{_SOURCES}/18e21b3b852a2f439eee35688f482f0a48aa4e3b/tfjs-backend-wasm/src/kernels/Max.ts",
    "lowering.passes.fusion.means._of_nothing",
    backend="wasm",
)
def reductions_of_nothing() -> str:
    """A product of no elements is what was in the memory before."""
    return """
      tf.tidy(() => tf.fill([4], 7).dataSync());
      return tf.prod(tf.zeros([0]), 0).dataSync()[0] !== 1;
    """


@_quirk(
    f"{_SOURCES}/0038b72f1bf1c6dc025998a92304e192760772de"
    "/tfjs-backend-wasm/src/cc/batch_mat_mul_impl.cc",
    "lowering.export.tfjs.fusion.fuse",
    backend="wasm",
)
def bias_of_transposed_products() -> str:
    """The bias of a fused product of transposed weights is right in the first row only."""
    return """
      const [a, b] = [tf.ones([2, 3]), tf.ones([2, 3])], bias = tf.tensor([1, 2]);
      const product = tf.fused.matMul({a, b, transposeB: true, bias, activation: 'linear'});
      return product.dataSync()[2] !== 4;
    """


@_quirk(
    f"{_SOURCES}/0a05c52a78b14981a480538383603fcd8492366d/tfjs-backend-wasm/src/cc/conv2d_impl.cc",
    "lowering.tensors.convolutions._without_rest",
    backend="wasm",
)
def convolutions_with_a_rest() -> str:
    """Where one axis has padding and another a rest behind the last window, results are zeros."""
    return """
      const images = tf.ones([1, 2, 2, 1]), weights = tf.ones([2, 1, 1, 1]);
      return tf.conv2d(images, weights, [1, 2], 'same').dataSync()[0] !== 2;
    """


@_quirk(
    f"{_SOURCES}/022376982ad26736abe92d587adb809b7f2482fb"
    "/tfjs-converter/src/operations/op_list/convolution.ts",
    "lowering.export.tfjs.fusion.fuse",
    backend="cpu",
)
def slope_of_depthwise_convolutions() -> str:
    """A fused depthwise convolution does not get the slope of its leaky ReLU."""
    return """
      const bytes = (text) => btoa(text), ones = {list: {i: ['1', '1', '1', '1']}};
      const float = {dtype: {type: 'DT_FLOAT'}}, dim = Array(4).fill({size: '1'});
      const node = [
        {name: 'x', op: 'Placeholder', attr: {...float, shape: {shape: {dim}}}},
        {name: 'weights', op: 'Const', attr: float}, {name: 'bias', op: 'Const', attr: float},
        {name: 'y', op: 'FusedDepthwiseConv2dNative', input: ['x', 'weights', 'bias'], attr: {
          fused_ops: {list: {s: ['BiasAdd', 'LeakyRelu'].map(bytes)}}, num_args: {i: '1'},
          leakyrelu_alpha: {f: 0.5}, strides: ones, dilations: ones,
          padding: {s: bytes('VALID')}, data_format: {s: bytes('NHWC')}}}];
      const model = await tf.loadGraphModel({load: async () => ({
        modelTopology: {node, versions: {producer: 1}},
        weightSpecs: [{name: 'weights', shape: [1, 1, 1, 1], dtype: 'float32'},
                      {name: 'bias', shape: [1], dtype: 'float32'}],
        weightData: new Float32Array([1, 0]).buffer})});
      return model.execute({x: tf.tensor([-1], [1, 1, 1, 1])}).dataSync()[0] !== -0.5;
    """


@_quirk(
    f"{_SOURCES}/18e21b3b852a2f439eee35688f482f0a48aa4e3b"
    "/tfjs-converter/src/operations/executors/utils.ts",
    "lowering.export.frozen.number_outputs",
    backend="cpu",
)
def numbers_of_results() -> str:
    """In a function, the first result of another name is taken for the first of the op.

    TensorFlow counts anew for each name: the indices of TopKV2 are `indices:0`.
    """
    return """
      const f = {
        signature: {name: 'f', inputArg: [{name: 'x', type: 'DT_FLOAT'}],
                    outputArg: [{name: 'i', type: 'DT_INT32'}]},
        nodeDef: [{name: 'k', op: 'Const', attr: {dtype: {type: 'DT_INT32'}}},
                  {name: 't', op: 'TopKV2', input: ['x', 'k:output:0'], attr: {sorted: {b: true}}}],
        ret: {i: 't:indices:0'}};
      const call = {func: {name: 'f'}}, shape = {shape: {dim: [{size: '2'}]}};
      const node = [
        {name: 'x', op: 'Placeholder', attr: {dtype: {type: 'DT_FLOAT'}, shape}},
        {name: 'c', op: 'Const', attr: {dtype: {type: 'DT_BOOL'}}},
        {name: 'y', op: 'StatelessIf', input: ['c', 'x'],
         attr: {then_branch: call, else_branch: call}}];
      const model = await tf.loadGraphModel({load: async () => ({
        modelTopology: {node, library: {function: [f]}, versions: {producer: 1}},
        weightSpecs: [{name: 'k', shape: [], dtype: 'int32'},
                      {name: 'c', shape: [], dtype: 'bool'}],
        weightData: new Uint8Array([2, 0, 0, 0, 1]).buffer})});
      return (await model.executeAsync({x: tf.tensor([5, 7])})).dataSync()[0] !== 1;
    """
