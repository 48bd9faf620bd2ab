// The runtimes of a browser behind one function: `load(runtime, url)` gives a model, whose `run`
// takes arrays by name, and gives {outputs, milliseconds}: arrays by name, and how long they took.
// An array is {dtype, shape, data}; data is a typed array.
//
// `run(arrays, kept)` leaves the outputs that `kept` names in the runtime's own memory, as
// {kept}. Such an array is an input of one later run, which frees it; `free` does so without a run.
//
// The page needs an import map for '@litertjs/core' and '@litertjs/wasm-utils'. All files of the
// runtimes stand in `lib/` beside this one.

const LIB = new URL('./lib/', import.meta.url).href;

export const RUNTIMES = ['tfjs-webgl', 'tfjs-wasm', 'tfjs-cpu', 'litert', 'onnxruntime'];

// Loads a model for a runtime. The URL is that of the folder of a TF.js model, or of a file.
export async function load(runtime, url) {
  if (runtime === 'litert') return loadLiteRT(url);
  if (runtime === 'onnxruntime') return loadONNX(url);
  if (runtime.startsWith('tfjs-')) return loadTFJS(runtime.slice('tfjs-'.length), url);
  throw new Error(`unknown runtime ${runtime}`);
}

// The typed array of each dtype.
export const ARRAYS = {
  float32: Float32Array, int32: Int32Array, uint32: Uint32Array, int16: Int16Array,
  uint16: Uint16Array, int8: Int8Array, uint8: Uint8Array, bool: Uint8Array,
};

// The promise of each script or library, by what it is.
const loaded = new Map();

function once(name, start) {
  if (!loaded.has(name)) loaded.set(name, start());
  return loaded.get(name);
}

function script(name) {
  return once(name, () => new Promise((resolve, reject) => {
    const element = document.createElement('script');
    element.src = LIB + name;
    element.onload = resolve;
    element.onerror = () => reject(new Error(`${name} cannot be loaded`));
    document.head.append(element);
  }));
}

// What `compute` gives, and how long that took.
async function timed(compute) {
  const start = performance.now();
  const outputs = await compute();
  return {outputs, milliseconds: performance.now() - start};
}

// Work of TF.js waits for earlier work, as one backend at a time is the current one.
let lastOfTFJS = Promise.resolve();

function inTurn(backend, work) {
  const result = lastOfTFJS.then(async () => {
    if (!await tf.setBackend(backend)) throw new Error(`this browser has no ${backend}`);
    return work();
  });
  lastOfTFJS = result.catch(() => {});
  return result;
}

// TF.js has no unsigned or short integers; words of 32 bits keep their bits.
function tensorOfTFJS({data, shape, dtype, kept}) {
  if (kept) return kept;
  if (dtype === 'uint32') data = new Int32Array(data.buffer, data.byteOffset, data.length);
  const held = ['float32', 'bool'].includes(dtype) ? dtype : 'int32';
  return tf.tensor(ARRAYS[held].from(data), shape, held);
}

async function startTFJS(backend) {
  await script('tfjs/tf-core.min.js');
  await script('tfjs/tf-converter.min.js');
  // The backends use functions of the one for the CPU, which has to be there first.
  await script('tfjs/tf-backend-cpu.min.js');
  await script(`tfjs/tf-backend-${backend}.min.js`);
  if (backend === 'wasm') tf.wasm.setWasmPaths(`${LIB}tfjs/`);
}

// What a function of `tf` gives, by a backend of TF.js.
export async function evaluate(backend, compute) {
  await startTFJS(backend);
  return inTurn(backend, () => compute(tf));
}

async function loadTFJS(backend, url) {
  await startTFJS(backend);
  const model = await inTurn(backend, () => tf.loadGraphModel(`${url}/model.json`));
  const {inputs, outputs} = model.modelSignature;
  const names = Object.keys(outputs);
  const nodes = names.map((name) => outputs[name].name);
  let isDynamic = false;

  async function execute(given) {
    if (!isDynamic) {
      try {
        return model.execute(given, nodes);
      } catch (error) {
        if (!/dynamic/.test(error.message)) throw error;
        isDynamic = true;
      }
    }
    return model.executeAsync(given, nodes);
  }

  function run(arrays, kept = []) {
    return inTurn(backend, () => timed(async () => {
      const given = Object.fromEntries(Object.entries(arrays).map(
          ([name, x]) => [inputs[name].name, tensorOfTFJS(x)]));
      const results = [await execute(given)].flat();
      const found = await Promise.all(results.map(async (tensor, i) => {
        if (kept.includes(names[i])) return [names[i], {kept: tensor}];
        const {dtype, shape} = tensor;
        // A cast may leave the data in an array of the dtype before.
        const data = ARRAYS[dtype].from(await tensor.data());
        tensor.dispose();
        return [names[i], {dtype, shape, data}];
      }));
      tf.dispose(given);
      return Object.fromEntries(found);
    }));
  }

  const free = (array) => inTurn(backend, () => array.kept.dispose());
  return {run, free, dispose: () => model.dispose()};
}

// LiteRT without a look for a GPU, and without notes on what it does: both would fill the console.
async function startLiteRT() {
  const litert = await import('@litertjs/core');
  const create = litert.Environment.create;
  litert.Environment.create = () => create.call(litert.Environment, {webGpuDevice: null});
  globalThis.Module = {
    printErr: (line) => /^(INFO|WARNING):/.test(line) || console.error(line),
  };
  await litert.loadLiteRt(`${LIB}litert/`);
  return litert;
}

async function loadLiteRT(url) {
  const {loadAndCompile, Tensor} = await once('litert', startLiteRT);
  const model = await loadAndCompile(url, {accelerator: 'wasm'});

  async function run(arrays, kept = []) {
    const given = Object.fromEntries(Object.entries(arrays).map(
        ([name, x]) => [name, x.kept ?? new Tensor(x.data, x.shape)]));
    const results = await model.run(given);
    const found = Object.entries(results).map(([name, x]) => {
      if (kept.includes(name)) return [name, {kept: x}];
      const data = x.toTypedArray().slice();
      const {dtype, layout} = x.type;
      x.delete();
      return [name, {dtype, shape: [...layout.dimensions], data}];
    });
    for (const x of Object.values(given)) x.delete();
    return Object.fromEntries(found);
  }

  return {
    run: (...given) => timed(() => run(...given)),
    free: (array) => array.kept.delete(),
    dispose: () => model.delete(),
  };
}

async function loadONNX(url) {
  const ort = await import('./lib/onnxruntime/ort.wasm.bundle.min.mjs');
  ort.env.wasm.wasmPaths = {wasm: `${LIB}onnxruntime/ort-wasm-simd-threaded.wasm`};
  // Threads need headers that a plain file server does not send.
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create(url, {logSeverityLevel: 3});

  async function run(arrays, kept = []) {
    const given = Object.fromEntries(Object.entries(arrays).map(
        ([name, x]) => [name, x.kept ?? new ort.Tensor(x.dtype, x.data, x.shape)]));
    const results = await session.run(given);
    return Object.fromEntries(Object.entries(results).map(([name, x]) => [
      name, kept.includes(name) ? {kept: x} : {dtype: x.type, shape: x.dims, data: x.data},
    ]));
  }

  return {
    run: (...given) => timed(() => run(...given)),
    // Its tensors are arrays of JavaScript.
    free: () => {},
    dispose: () => session.release(),
  };
}
