// Tables with a column for JAX and one for each runtime.

import {COLUMNS} from './programs.js';

const JAX = {runtime: 'jax', name: 'JAX', by: 'CPU'};

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Adds the head of a table.
export function addHead(table) {
  const head = [JAX, ...COLUMNS].map(
      ({name, by}) => element('th', {scope: 'col'}, name, element('small', {}, by)));
  table.append(element('thead', {}, element('tr', {}, element('td'), ...head)));
}

// Adds a group of rows; gives the cells of each row by runtime, JAX included.
export function addRows(table, part, labels, title) {
  const body = element(part);
  if (title !== undefined) {
    const colSpan = COLUMNS.length + 2;
    body.append(element('tr', {className: 'group'},
        element('th', {scope: 'rowgroup', colSpan}, title)));
  }
  const rows = labels.map((label) => {
    const row = element('tr', {}, element(label === '' ? 'td' : 'th', {textContent: label}));
    if (label !== '') row.firstChild.scope = 'row';
    const cells = {};
    for (const {runtime} of [JAX, ...COLUMNS]) {
      cells[runtime] = element('td', {textContent: '–'});
      row.append(cells[runtime]);
    }
    body.append(row);
    return cells;
  });
  table.append(body);
  return rows;
}

// A small difference, such as 1.2e-7.
export function shownDifference(value) {
  return value === 0 ? '0' : value.toExponential(1);
}
