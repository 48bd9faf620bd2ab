// The part of the page in which each runtime draws JAX's random numbers.

import {COLUMNS, Program, rest} from './programs.js';
import {addHead, addRows, element} from './tables.js';

const find = (id) => document.getElementById(id);

const COUNT = 4;
// For how many seeds each runtime is compared with JAX when it is loaded.
const COMPARED = 8;

// Words of 32 bits from their halves.
function words({high, low}) {
  return Array.from(high, (upper, i) => upper * 0x10000 + low[i]);
}

// The rows of each kind of numbers: how they are taken from outputs, shown, and compared.
const KINDS = [
  {
    title: 'bits',
    of: words,
    show: (word) => word.toString(16).padStart(8, '0'),
    isEqual: (x, y) => x === y,
  },
  {
    title: 'uniform',
    of: ({uniform}) => uniform,
    show: (value) => value.toFixed(6),
    isEqual: (x, y) => x === y,
  },
  {
    // A normal number is rounded several times, in each runtime in its own order.
    title: 'normal',
    of: ({normal}) => normal,
    show: (value) => value.toFixed(5),
    isEqual: (x, y) => Math.abs(x - y) <= 1e-5,
  },
];

export class RandomNumbers {
  #known;
  #programs = new Map();
  #found = new Map();
  #rows;
  #counts;

  // `known` has, for each seed from 0 on, what JAX draws.
  constructor(known) {
    this.#known = known;
    const table = find('numbers');
    addHead(table);
    const labels = [...Array(COUNT).keys()].map(String);
    this.#rows = KINDS.map(({title}) => addRows(table, 'tbody', labels, title));
    [this.#counts] = addRows(
        table, 'tbody', [''], `Bits equal to JAX’s, for the seeds 0 to ${COMPARED - 1}`);
    this.#counts.jax.textContent = '';
    const seed = find('seed');
    seed.addEventListener('input', () => this.#draw());
    find('seed-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#draw();
    });
    find('another').addEventListener('click', () => {
      seed.value = String(Math.floor(Math.random() * known.length));
      this.#draw();
    });
  }

  // Loads the program in a runtime, and compares it with JAX.
  async add(column) {
    const {runtime, name, by} = column;
    const program = await Program.load('random', column);
    let equal = 0;
    for (let seed = 0; seed < COMPARED; seed++) {
      const {outputs} = await program.run(this.#inputs(seed));
      const expected = words(this.#known[seed]);
      equal += words(this.#data(outputs)).filter((word, i) => word === expected[i]).length;
      await rest();
    }
    const all = COMPARED * COUNT;
    this.#counts[runtime].textContent = `${equal}/${all}`;
    if (equal < all) {
      const reason = `${name} by ${by} computes other bits than JAX.`;
      find('reasons').append(element('li', {textContent: reason}));
    }
    this.#programs.set(runtime, program);
    this.#draw();
  }

  #inputs(seed) {
    return {seed: {dtype: 'int32', shape: [], data: Int32Array.of(seed)}};
  }

  #data(outputs) {
    return Object.fromEntries(Object.entries(outputs).map(([name, {data}]) => [name, data]));
  }

  #draw() {
    const input = find('seed');
    this.#found.clear();
    if (!input.checkValidity()) {
      find('comparison').textContent = `A seed is a whole number from 0 to ${input.max}.`;
      return;
    }
    const seed = Number(input.value);
    find('seed-shown').textContent = String(seed);
    for (const [runtime, program] of this.#programs) {
      program.runNewest(this.#inputs(seed), ({outputs}) => {
        this.#found.set(runtime, this.#data(outputs));
        if (this.#found.size === this.#programs.size) this.#show(this.#known[seed]);
      });
    }
  }

  // Shows what was drawn, beside JAX's numbers or, if they are not known, what most have drawn.
  #show(known) {
    const drawn = [...this.#found.values()];
    const expected = known ?? mostCommon(drawn);
    const equal = [];
    for (const [runtime, numbers] of [['jax', known], ...this.#found]) {
      let isEqual = true;
      KINDS.forEach((kind, group) => {
        for (let i = 0; i < COUNT; i++) {
          const cell = this.#rows[group][i][runtime];
          const shown = numbers ? kind.show(kind.of(numbers)[i]) : '–';
          const isSame = !numbers || kind.isEqual(kind.of(numbers)[i], kind.of(expected)[i]);
          cell.replaceChildren(isSame ? shown : element('s', {textContent: shown}));
          isEqual &&= isSame;
        }
      });
      if (isEqual && runtime !== 'jax') equal.push(runtime);
    }
    const names = COLUMNS.filter(({runtime}) => equal.includes(runtime))
        .map(({name, by}) => `${name} (${by})`).join(', ');
    find('comparison').textContent = known ?
        `JAX’s own numbers come out of ${names || 'no runtime'}.` :
        `The page has JAX’s numbers for the seeds 0 to ${this.#known.length - 1}. ` +
            `For this one, the same come out of ${names}.`;
  }
}

// The numbers of those whose bits most of the others have, too.
function mostCommon(drawn) {
  const bits = drawn.map((numbers) => words(numbers).join());
  const votes = bits.map((text) => bits.filter((other) => other === text).length);
  return drawn[votes.indexOf(Math.max(...votes))];
}
