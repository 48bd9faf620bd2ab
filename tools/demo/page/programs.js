// The programs of the page in each runtime.

import {load} from './runtimes.js';

// The runtimes in the order of the tables; `file` is the model that each takes.
export const COLUMNS = [
  {runtime: 'tfjs-webgl', name: 'TF.js', by: 'webgl', file: 'tfjs'},
  {runtime: 'tfjs-wasm', name: 'TF.js', by: 'wasm', file: 'tfjs'},
  {runtime: 'litert', name: 'LiteRT', by: 'wasm', file: 'model.tflite'},
  {runtime: 'onnxruntime', name: 'ONNX Runtime', by: 'wasm', file: 'model.onnx'},
];

// A program in one runtime, which runs the newest of the inputs that it is given.
export class Program {
  #model;
  #isBusy = false;
  #next = null;

  constructor(model) {
    this.#model = model;
  }

  static async load(name, {runtime, file}) {
    const url = new URL(`./models/${name}/${file}`, import.meta.url).href;
    return new Program(await load(runtime, url));
  }

  // The outputs for some inputs, and how long they took, without outputs that stay in the runtime;
  // see `runtimes.js`.
  run(inputs, kept) {
    return this.#model.run(inputs, kept);
  }

  // Frees an output that has stayed in the runtime.
  free(array) {
    return this.#model.free(array);
  }

  // Calls `use` with what `run` gives for the newest inputs; inputs that are older by then are
  // left out.
  async runNewest(inputs, use) {
    this.#next = inputs;
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      while (this.#next !== null) {
        const newest = this.#next;
        this.#next = null;
        const found = await this.run(newest);
        if (this.#next === null) use(found);
      }
    } finally {
      this.#isBusy = false;
    }
  }
}

// Lets the browser show what has changed before more work begins.
export function rest() {
  return new Promise((resolve) => setTimeout(resolve));
}

export function largestDifference(x, y) {
  return x.reduce((largest, value, i) => Math.max(largest, Math.abs(value - y[i])), 0);
}
