// The pad on which digits are drawn, by pointer or keyboard.

import {DIGIT, SIDE, THICKNESS, fromDigit, fromStrokes, showDigit} from './ink.js';

const ARROWS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};

// How far the keyboard moves the pen at a time.
const STEP = 1 / 32;

export class Pad extends EventTarget {
  #canvas;
  #say;
  #strokes = [];
  #digit = null;
  #pointer = null;
  // The pen of the keyboard.
  #pen = [0.5, 0.25];
  #isDown = false;
  #pressed = new Set();

  // `say` is told what happens to the pen of the keyboard. Changes of the drawing are events
  // 'draw'.
  constructor(canvas, say) {
    super();
    this.#canvas = canvas;
    this.#say = say;
    canvas.addEventListener('pointerdown', (event) => this.#startPointer(event));
    canvas.addEventListener('pointermove', (event) => this.#movePointer(event));
    for (const name of ['pointerup', 'pointercancel']) {
      canvas.addEventListener(name, (event) => this.#endPointer(event));
    }
    canvas.addEventListener('keydown', (event) => this.#pressKey(event));
    canvas.addEventListener('keyup', (event) => this.#pressed.delete(event.key));
    canvas.addEventListener('focus', () => this.#show());
    canvas.addEventListener('blur', () => {
      this.#pressed.clear();
      this.#isDown = false;
      this.#show();
    });
    new ResizeObserver(() => this.#show()).observe(canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#show());
  }

  // The example that is on the pad, if it is one.
  get digit() {
    return this.#digit;
  }

  get isEmpty() {
    return this.#digit === null && this.#strokes.length === 0;
  }

  // The drawing as the model takes it.
  get drawing() {
    return this.#digit === null ? fromStrokes(this.#strokes) : fromDigit(this.#digit.image);
  }

  clear() {
    this.#change(() => {
      this.#strokes = [];
      this.#isDown = false;
    });
  }

  undo() {
    this.#change(() => {
      this.#strokes.pop();
      this.#isDown = false;
    });
  }

  // Puts an example on the pad.
  put(digit) {
    this.#change(() => {
      this.#strokes = [];
      this.#digit = digit;
    });
  }

  #change(work) {
    this.#digit = null;
    work();
    this.#show();
    this.dispatchEvent(new Event('draw'));
  }

  #position({clientX, clientY}) {
    const {left, top, width, height} = this.#canvas.getBoundingClientRect();
    return [(clientX - left) / width, (clientY - top) / height];
  }

  #startPointer(event) {
    if (this.#pointer !== null || event.button !== 0) return;
    this.#pointer = event.pointerId;
    this.#canvas.setPointerCapture(event.pointerId);
    this.#isDown = false;
    this.#change(() => this.#strokes.push([this.#position(event)]));
  }

  #movePointer(event) {
    if (event.pointerId !== this.#pointer) return;
    const events = event.getCoalescedEvents?.() ?? [];
    const points = (events.length ? events : [event]).map((each) => this.#position(each));
    this.#change(() => this.#strokes.at(-1)?.push(...points));
  }

  #endPointer(event) {
    if (event.pointerId === this.#pointer) this.#pointer = null;
  }

  #pressKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in ARROWS) {
      this.#pressed.add(event.key);
      this.#movePen();
    } else if (event.key === ' ') {
      this.#isDown = !this.#isDown;
      this.#say(this.#isDown ? 'Pen down' : 'Pen up');
      if (this.#isDown) this.#change(() => this.#strokes.push([this.#pen]));
      this.#show();
    } else if (event.key === 'Escape') {
      this.clear();
      this.#say('Cleared');
    } else if (event.key === 'Backspace' || event.key === 'Delete') {
      this.undo();
      this.#say('Stroke taken back');
    } else {
      return;
    }
    event.preventDefault();
  }

  #movePen() {
    const moves = [...this.#pressed].map((key) => ARROWS[key]);
    this.#pen = this.#pen.map((value, axis) => {
      const moved = value + STEP * moves.reduce((sum, move) => sum + move[axis], 0);
      return Math.min(Math.max(moved, 0), 1);
    });
    if (this.#isDown) this.#change(() => this.#strokes.at(-1).push(this.#pen));
    this.#show();
  }

  #show() {
    const canvas = this.#canvas;
    // A multiple of the digit's size, so that its pixels are sharp.
    const wanted = canvas.clientWidth * devicePixelRatio;
    canvas.width = canvas.height = Math.max(Math.round(wanted / DIGIT), 1) * DIGIT;
    if (this.#digit !== null) showDigit(canvas, this.#digit.image);
    const context = canvas.getContext('2d');
    context.strokeStyle = context.fillStyle = getComputedStyle(canvas).color;
    context.scale(canvas.width, canvas.height);
    context.lineCap = context.lineJoin = 'round';
    context.lineWidth = THICKNESS / SIDE;
    for (const stroke of this.#strokes) {
      context.beginPath();
      context.moveTo(...stroke[0]);
      for (const point of stroke) context.lineTo(...point);
      context.stroke();
    }
    if (canvas.matches(':focus-visible')) this.#showPen(context);
  }

  #showPen(context) {
    const style = getComputedStyle(document.documentElement);
    context.strokeStyle = context.fillStyle = style.getPropertyValue('--accent');
    context.lineWidth = 1 / SIDE;
    context.beginPath();
    context.arc(...this.#pen, THICKNESS / SIDE * 0.8, 0, 2 * Math.PI);
    context.stroke();
    if (this.#isDown) context.fill();
  }
}
