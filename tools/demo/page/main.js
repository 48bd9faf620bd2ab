import {Digits} from './digits.js';
import {COLUMNS} from './programs.js';
import {RandomNumbers} from './random.js';
import {Tabs} from './tabs.js';
import {Writing} from './writing.js';

const response = await fetch('models/jax.json');
const known = await response.json();
// The parts in each tab's panel.
const PANELS = {
  'numbers-panel': [new Digits(known), new RandomNumbers(known.random)],
  'text-panel': [new Writing(known.writing)],
};

// The panels whose programs are loaded, or will be.
const loaded = new Map();

// Loads the programs of a panel when it is first shown.
async function load(panel) {
  if (!loaded.has(panel)) loaded.set(panel, start(PANELS[panel]));
  await loaded.get(panel);
  document.getElementById(panel).dataset.ready = 'true';
}

async function start(parts) {
  // What is small is loaded first, so that there is something to see soon.
  for (const part of parts) {
    await Promise.all([...COLUMNS].reverse().map(async (column) => {
      try {
        await part.add(column);
      } catch (error) {
        const alert = document.getElementById('alert');
        alert.hidden = false;
        alert.append(`${column.name} (${column.by}) does not run here: ${error.message} `);
      }
    }));
  }
}

const tabs = new Tabs(document.getElementById('tabs'));
tabs.addEventListener('show', () => load(tabs.shown));
await load(tabs.shown);
