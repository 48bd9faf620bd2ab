// The part of the page in which each runtime writes a text, a character a step.

import {COLUMNS, Program, rest} from './programs.js';
import {element} from './tables.js';

const find = (id) => document.getElementById(id);

export class Writing {
  #known;
  #programs = new Map();
  // What is shown of each runtime: its text, and a note on it.
  #cards = new Map();
  #examples = [];
  // What is written now; a newer one ends it.
  #task = null;

  // `known` has what JAX has written, how long a text is, and the shape of each part of the cache.
  constructor(known) {
    this.#known = known;
    for (const {runtime, name, by} of [{runtime: 'jax', name: 'JAX', by: 'CPU'}, ...COLUMNS]) {
      this.#addCard(runtime, name, by);
    }
    this.#addExamples();
    find('writing-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#write();
    });
    find('stop').addEventListener('click', () => this.#stop());
    find('writing').addEventListener('keydown', ({key}) => key === 'Escape' && this.#stop());
    const {perplexity, parameters, version} = known;
    find('language-model').textContent =
        `A decoder of two layers with ${parameters.toLocaleString('en')} parameters, trained in JAX ` +
        `${version} for a minute or two on what Python’s help says. It chooses a character as if ` +
        `from ${perplexity.toFixed(1)} equally probable ones (its perplexity). Random numbers are ` +
        'those of jax.random in every runtime, so a seed gives the same text everywhere.';
  }

  // Loads the programs in a runtime, and runs the model once, so that no later step is the slow
  // first one.
  async add(column) {
    const draw = await Program.load('uniform', column);
    const write = await Program.load('writing', column);
    const {cache} = await this.#step(write, 0, 0, 0, 0, this.#empty());
    await this.#free(write, cache);
    this.#programs.set(column.runtime, {draw, write});
    this.#note(column.runtime, '');
    if (this.#programs.size === COLUMNS.length) {
      this.#say('Write a text, or choose one that JAX has written.');
    }
    find('write').disabled = false;
    for (const button of this.#examples) button.disabled = false;
  }

  #addCard(runtime, name, by) {
    const note = element('p', {className: 'note', textContent: runtime === 'jax' ? '' : 'Loading …'});
    const text = element('pre', {className: 'text'});
    const title = element('h3', {}, name, ' ', element('small', {textContent: by}));
    const card = element('article', {}, title, note, text);
    card.dataset.runtime = runtime;
    this.#cards.set(runtime, {note, text});
    find('texts').append(card);
  }

  #addExamples() {
    for (const example of this.#known.texts) {
      const {beginning, temperature, seed} = example;
      const how = temperature === 0 ? 'most probable' : `temperature ${temperature}, seed ${seed}`;
      const button = element(
          'button', {type: 'button', disabled: true}, beginning, ' ', element('small', {}, how));
      button.addEventListener('click', () => {
        find('beginning').value = beginning;
        find('temperature').value = String(temperature);
        find('text-seed').value = String(seed);
        this.#write();
      });
      find('beginnings').append(button);
      this.#examples.push(button);
    }
  }

  // What the form asks for.
  #read() {
    return {
      beginning: find('beginning').value,
      temperature: Number(find('temperature').value),
      seed: Number(find('text-seed').value),
    };
  }

  #stop() {
    if (this.#task === null) return;
    this.#task = null;
    find('stop').disabled = true;
    this.#say('Stopped.');
  }

  // Writes a text in one runtime after the other, so that none takes the time of another.
  async #write() {
    if (!find('writing-form').reportValidity()) return;
    const task = this.#task = this.#read();
    find('stop').disabled = false;
    const isAsked = ({beginning, temperature, seed}) => beginning === task.beginning &&
        temperature === task.temperature && (temperature === 0 || seed === task.seed);
    const expected = this.#known.texts.find(isAsked)?.text;
    for (const runtime of this.#cards.keys()) this.#show(runtime, '');
    for (const runtime of this.#programs.keys()) this.#note(runtime, 'Waits for the others.');
    this.#show('jax', expected ?? '');
    this.#note('jax', expected === undefined ? 'The page does not know what JAX writes here.' : '');
    const texts = new Map();
    for (const {runtime, name, by} of COLUMNS) {
      const programs = this.#programs.get(runtime);
      if (programs === undefined) continue;
      this.#say(`${name} (${by}) writes …`);
      try {
        texts.set(`${name} (${by})`, await this.#writeBy(runtime, programs, task, expected));
      } catch (error) {
        this.#note(runtime, `Failed: ${error.message}`);
      }
      if (task !== this.#task) return;
    }
    this.#task = null;
    find('stop').disabled = true;
    this.#say(summary(texts, expected));
  }

  // The text that a runtime writes, which is shown as it grows.
  async #writeBy(runtime, {draw, write}, task, expected) {
    const seed = {dtype: 'int32', shape: [], data: Int32Array.of(task.seed)};
    const uniform = (await draw.run({seed})).outputs.uniform.data;
    const tokens = Array.from(task.beginning, (c) => c.charCodeAt(0));
    let cache = this.#empty();
    let time = 0;
    try {
      for (let position = 0; position + 1 < this.#known.capacity; position++) {
        const step = await this.#step(
            write, tokens[position], position, uniform[position], task.temperature, cache);
        cache = step.cache;
        time += step.milliseconds;
        if (position + 1 === tokens.length) tokens.push(step.next);
        this.#show(runtime, String.fromCharCode(...tokens), expected);
        this.#note(runtime, `${(1000 * (position + 1) / time).toFixed(0)} tokens per second`);
        await rest();
        if (task !== this.#task) break;
      }
    } finally {
      await this.#free(write, cache);
    }
    return String.fromCharCode(...tokens);
  }

  // Reads a token; gives the next one, the cache with the token, and how long that took.
  async #step(program, token, position, uniform, temperature, cache) {
    const inputs = {
      token: {dtype: 'int32', shape: [1, 1], data: Int32Array.of(token)},
      position: {dtype: 'int32', shape: [1], data: Int32Array.of(position)},
      uniform: {dtype: 'float32', shape: [], data: Float32Array.of(uniform)},
      temperature: {dtype: 'float32', shape: [], data: Float32Array.of(temperature)},
      ...cache,
    };
    const names = Object.keys(cache);
    const {outputs, milliseconds} = await program.run(inputs, names.map((name) => `new_${name}`));
    const updated = Object.fromEntries(names.map((name) => [name, outputs[`new_${name}`]]));
    return {next: outputs.next.data[0], cache: updated, milliseconds};
  }

  // A cache without tokens.
  #empty() {
    return Object.fromEntries(Object.entries(this.#known.cache).map(([name, shape]) => {
      const data = new Float32Array(shape.reduce((x, y) => x * y));
      return [name, {dtype: 'float32', shape, data}];
    }));
  }

  async #free(program, cache) {
    for (const array of Object.values(cache)) if (array.kept) await program.free(array);
  }

  #note(runtime, note) {
    this.#cards.get(runtime).note.textContent = note;
  }

  // Shows a text; what differs from the one that is expected is struck out.
  #show(runtime, text, expected = text) {
    const differs = Array.from(text).findIndex((character, i) => character !== expected[i]);
    const same = differs === -1 ? text.length : differs;
    this.#cards.get(runtime).text.replaceChildren(
        text.slice(0, same), element('s', {textContent: text.slice(same)}));
  }

  #say(text) {
    find('writing-status').textContent = text;
  }
}

// What is said of the texts of all runtimes, by name.
function summary(texts, expected) {
  const all = [...texts.values()];
  const isSame = all.every((text) => text === (expected ?? all[0]));
  if (isSame && expected !== undefined) return 'JAX’s own text comes out of every runtime.';
  if (isSame) return 'The same text comes out of every runtime.';
  const most = expected ?? mostCommon(all);
  const others = [...texts].filter(([, text]) => text !== most).map(([name]) => name);
  return `Another text comes out of ${others.join(', ')}.`;
}

function mostCommon(texts) {
  const votes = texts.map((text) => texts.filter((other) => other === text).length);
  return texts[votes.indexOf(Math.max(...votes))];
}
