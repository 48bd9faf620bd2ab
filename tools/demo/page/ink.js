// Drawings as the model takes them: 64x64 pixels, 0 is paper and 1 is ink.

export const SIDE = 64;
export const DIGIT = 8;
const LEVELS = 16;

// How thick a stroke is, in pixels.
export const THICKNESS = 5;

// The ink of strokes; a stroke is a list of points [x, y], from 0 to 1.
export function fromStrokes(strokes) {
  const drawing = new Float32Array(SIDE * SIDE);
  for (const stroke of strokes) {
    // A stroke of one point is a dot.
    for (let i = 0; i < Math.max(stroke.length - 1, 1); i++) {
      addLine(drawing, stroke[i], stroke[Math.min(i + 1, stroke.length - 1)]);
    }
  }
  return drawing;
}

function addLine(drawing, [x0, y0], [x1, y1]) {
  const [left, top, dx, dy] = [x0, y0, x1 - x0, y1 - y0].map((value) => value * SIDE);
  const squared = dx * dx + dy * dy || 1;
  const margin = THICKNESS / 2 + 1;
  const within = (value) => Math.min(Math.max(Math.floor(value), 0), SIDE);
  const firstX = within(left + Math.min(dx, 0) - margin);
  const firstY = within(top + Math.min(dy, 0) - margin);
  const endX = within(left + Math.max(dx, 0) + margin + 1);
  const endY = within(top + Math.max(dy, 0) + margin + 1);
  for (let y = firstY; y < endY; y++) {
    for (let x = firstX; x < endX; x++) {
      const [px, py] = [x + 0.5 - left, y + 0.5 - top];
      const share = Math.min(Math.max((px * dx + py * dy) / squared, 0), 1);
      const distance = Math.hypot(px - share * dx, py - share * dy);
      const ink = Math.min(Math.max(THICKNESS / 2 - distance + 0.5, 0), 1);
      drawing[y * SIDE + x] = Math.max(drawing[y * SIDE + x], ink);
    }
  }
}

// One of scikit-learn's digits, 64 numbers from 0 to 16, as a drawing of squares.
export function fromDigit(image) {
  const size = SIDE / DIGIT;
  return Float32Array.from({length: SIDE * SIDE}, (_, i) => {
    const [x, y] = [i % SIDE, Math.floor(i / SIDE)].map((value) => Math.floor(value / size));
    return image[y * DIGIT + x] / LEVELS;
  });
}

// Shows a digit of 8x8 pixels on a canvas, in the canvas's colour.
export function showDigit(canvas, image) {
  const context = canvas.getContext('2d');
  const size = canvas.width / DIGIT;
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = getComputedStyle(canvas).color;
  image.forEach((value, i) => {
    context.globalAlpha = Math.min(value / LEVELS, 1);
    context.fillRect((i % DIGIT) * size, Math.floor(i / DIGIT) * size, size, size);
  });
  context.globalAlpha = 1;
}
