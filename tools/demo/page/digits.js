// The part of the page in which the same model reads a drawing in each runtime.

import {SIDE, fromDigit, showDigit} from './ink.js';
import {Pad} from './pad.js';
import {COLUMNS, Program, largestDifference, rest} from './programs.js';
import {addHead, addRows, element, shownDifference} from './tables.js';

const find = (id) => document.getElementById(id);

export class Digits {
  #known;
  #pad;
  #programs = new Map();
  // The probabilities of what is on the pad, by runtime.
  #found = new Map();
  #seen = [];
  #examples = [];
  #probabilities;
  #times;
  #differences;

  // `known` is what JAX has computed.
  constructor(known) {
    this.#known = known;
    this.#pad = new Pad(find('pad'), (text) => find('pen').textContent = text);
    this.#pad.addEventListener('draw', () => this.#read());
    find('clear').addEventListener('click', () => this.#pad.clear());
    find('undo').addEventListener('click', () => this.#pad.undo());
    this.#addTable();
    this.#addExamples();
    matchMedia('(prefers-color-scheme: dark)')
        .addEventListener('change', () => this.#showDigits());
    const {accuracy, tested} = known;
    find('model').textContent =
        `A network of two convolutions and two dense layers, trained in JAX ${known.versions.jax}. ` +
        `It recognizes ${(100 * accuracy).toFixed(1)}% of ${tested} digits that were ` +
        'kept from its training. Centring and scaling of a drawing are part of the JAX program.';
  }

  // Loads the model in a runtime, and compares it with JAX.
  async add(column) {
    const {runtime} = column;
    const program = await Program.load('digits', column);
    let largest = 0;
    for (const digit of this.#known.digits) {
      const {outputs} = await program.run(this.#inputs(fromDigit(digit.image)));
      const {data} = outputs.probabilities;
      largest = Math.max(largest, largestDifference(digit.probabilities, data));
      await rest();
    }
    this.#differences[runtime].textContent = shownDifference(largest);
    this.#programs.set(runtime, program);
    this.#read();
  }

  #inputs(data) {
    return {drawing: {dtype: 'float32', shape: [SIDE, SIDE], data}};
  }

  #addTable() {
    const table = find('probabilities');
    addHead(table);
    this.#probabilities = addRows(table, 'tbody', [...Array(10).keys()].map(String));
    [this.#times] = addRows(table, 'tbody', [''], 'Time, in milliseconds');
    const count = this.#known.digits.length;
    [this.#differences] = addRows(
        table, 'tbody', [''], `Largest difference from JAX over the ${count} digits below`);
    this.#times.jax.textContent = this.#differences.jax.textContent = '';
  }

  #addExamples() {
    for (const digit of this.#known.digits) {
      const canvas = element('canvas', {width: 8, height: 8});
      const button = element('button', {type: 'button'}, canvas);
      button.setAttribute('aria-label', `A ${digit.label}`);
      button.setAttribute('aria-pressed', 'false');
      button.addEventListener('click', () => this.#pad.put(digit));
      find('examples').append(button);
      this.#examples.push({digit, canvas, button});
    }
    this.#showDigits();
  }

  #showDigits() {
    for (const {digit, canvas} of this.#examples) showDigit(canvas, digit.image);
    showDigit(find('seen'), this.#seen);
  }

  // Runs the model in each runtime on what is on the pad.
  #read() {
    this.#found.clear();
    const {digit, drawing, isEmpty} = this.#pad;
    for (const {digit: example, button} of this.#examples) {
      button.setAttribute('aria-pressed', String(example === digit));
    }
    this.#showColumn('jax', digit?.probabilities);
    if (isEmpty) {
      this.#seen = [];
      for (const {runtime} of COLUMNS) this.#showColumn(runtime);
      this.#showAnswer();
    }
    for (const [runtime, program] of this.#programs) {
      program.runNewest(this.#inputs(drawing), (found) => this.#show(runtime, found));
    }
  }

  #show(runtime, {outputs: {probabilities, seen}, milliseconds}) {
    if (this.#pad.isEmpty) return;
    this.#times[runtime].textContent = milliseconds.toFixed(1);
    this.#seen = seen.data;
    this.#found.set(runtime, probabilities.data);
    this.#showColumn(runtime, probabilities.data);
    this.#showDigits();
    this.#showAnswer();
  }

  #showColumn(runtime, probabilities) {
    const largest = probabilities && Math.max(...probabilities);
    this.#probabilities.forEach((cells, i) => {
      const cell = cells[runtime];
      const share = probabilities?.[i];
      cell.textContent = share === undefined ? '–' : (100 * share).toFixed(1);
      cell.style.setProperty('--share', share ?? 0);
      cell.classList.toggle('best', share !== undefined && share === largest);
    });
    if (probabilities === undefined && runtime !== 'jax') this.#times[runtime].textContent = '–';
  }

  #showAnswer() {
    const {digit, isEmpty} = this.#pad;
    const found = [...this.#found.values()];
    if (isEmpty) {
      this.#say('Draw a digit, or choose one below.', '');
    } else if (found.length === this.#programs.size) {
      const answers = new Set(found.map((x) => x.indexOf(Math.max(...x))));
      const others = digit === null ? found : [digit.probabilities];
      const largest = Math.max(...found.flatMap((x) => others.map((y) => largestDifference(x, y))));
      const differ = digit === null ? 'The runtimes differ' : 'They differ from JAX';
      this.#say(
          answers.size === 1 ? `It is a ${[...answers][0]}.` :
                               `The runtimes disagree: ${[...answers].join(', ')}.`,
          `${differ} by at most ${shownDifference(largest)}`);
    }
  }

  // Shows an answer, which screen readers tell as well, but only if it is another one.
  #say(answer, difference) {
    const shown = find('answer');
    if (this.#programs.size && shown.textContent !== answer) shown.textContent = answer;
    find('difference').textContent = difference;
  }
}
