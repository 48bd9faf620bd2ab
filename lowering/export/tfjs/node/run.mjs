// Runs graph models of TF.js for a process that writes a request per line and reads an answer per
// line. A request has the path of a model, the backend that computes it, cpu or wasm, inputs and the
// names of outputs; an answer has the outputs, or an error.
import * as fs from 'node:fs';
import {createRequire} from 'node:module';
import * as path from 'node:path';
import * as readline from 'node:readline';

import '@tensorflow/tfjs-backend-cpu';
import {setWasmPaths} from '@tensorflow/tfjs-backend-wasm';
import {loadGraphModel} from '@tensorflow/tfjs-converter';
import * as tf from '@tensorflow/tfjs-core';

const ARRAYS = {float32: Float32Array, int32: Int32Array, bool: Uint8Array, complex64: Float32Array};

function readModel(file) {
  const model = JSON.parse(fs.readFileSync(file, 'utf8'));
  const folder = path.dirname(file);
  const weightSpecs = [];
  const shards = [];
  for (const group of model.weightsManifest) {
    weightSpecs.push(...group.weights);
    shards.push(...group.paths.map((name) => fs.readFileSync(path.join(folder, name))));
  }
  const bytes = Buffer.concat(shards);
  const weightData = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  return {
    load: async () => ({
      modelTopology: model.modelTopology,
      format: model.format,
      signature: model.signature,
      weightSpecs,
      weightData,
    }),
  };
}

function toTensor({dtype, shape, data}) {
  const bytes = Buffer.from(data, 'base64');
  const copy = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const values = new ARRAYS[dtype](copy);
  if (dtype === 'complex64') {
    const parts = [0, 1].map((k) => values.filter((_, i) => i % 2 === k));
    return tf.complex(tf.tensor(parts[0], shape), tf.tensor(parts[1], shape));
  }
  return tf.tensor(values, shape, dtype);
}

function fromTensor(x) {
  // The cpu backend casts without converting, so that float32 may come as integers.
  const kept = x.dataSync();
  const values = kept instanceof ARRAYS[x.dtype] ? kept : new ARRAYS[x.dtype](kept);
  const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  return {dtype: x.dtype, shape: x.shape, data: bytes.toString('base64')};
}

async function run({model, backend, inputs, outputs}) {
  await tf.setBackend(backend);
  const graph = await loadGraphModel(readModel(model));
  const tensors = Object.fromEntries(
      Object.entries(inputs).map(([name, input]) => [name, toTensor(input)]));
  const results = await graph.executeAsync(tensors, outputs);
  const listed = Array.isArray(results) ? results : [results];
  const answer = listed.map(fromTensor);
  graph.dispose();
  return answer;
}

// What TF.js prints must not come between the answers.
console.log = console.info = console.warn = console.error;
const script = createRequire(import.meta.url).resolve('@tensorflow/tfjs-backend-wasm');
setWasmPaths(path.dirname(script) + path.sep);
for await (const line of readline.createInterface({input: process.stdin})) {
  let answer;
  try {
    answer = {outputs: await run(JSON.parse(line))};
  } catch (error) {
    answer = {error: String(error?.stack ?? error)};
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
  tf.disposeVariables();
}
