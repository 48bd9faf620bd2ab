import {Digits} from './digits.js';
import {COLUMNS} from './programs.js';
import {RandomNumbers} from './random.js';

const response = await fetch('models/jax.json');
const known = await response.json();
const parts = [new Digits(known), new RandomNumbers(known.random)];

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
document.body.dataset.ready = 'true';
